/** Command tasks in a real worker on a real store, killed and cancelled while they run. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { commandTask } from '../../src/commands/command-task.ts'
import { openFiles } from '../../src/files/files.ts'
import type { SyncRequest } from '../../src/protocol/tasks/sync.ts'
import { startWorker } from '../../src/worker/index.ts'
import { isAlive, ownFolder } from '../harness/command-rig.ts'
import { needsServer } from '../harness/databases.ts'
import { ended, eventually } from '../harness/eventually.ts'
import { faultyPort, theFirst } from '../harness/faulty-port.ts'
import { folder as fileFolder } from '../harness/files.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { startProgram } from '../harness/program.ts'
import { shelf } from '../harness/shelf.ts'
import type { CommandWorkerProgram } from './programs/worker.ts'

const bounded = { timeout: 600_000 }
const short = { leaseSeconds: 5, heartbeatSeconds: 1, retry: { delaySeconds: 0 } }
const hurried = { drainSeconds: 2, waitSeconds: 0.2 }

/** Two processes that ignore SIGTERM. Each writes down its process id. */
function stubborn(book: string): object {
  const text = `trap "" TERM HUP; sh -c 'echo $$ > ${book}/child; while :; do sleep 0.1; done' & echo $$ > ${book}/first; wait; wait`
  return { run: { command: ['sh', '-c', text] } }
}

/** The file to which a command writes its process id. */
function makeBook(t: TestContext): { path: string; pids(): Promise<number[]> } {
  const path = join(ownFolder(t), 'book')
  mkdirSync(path)
  const pidIn = (name: string) => Number(readFileSync(join(path, name), 'utf8'))
  const bothWritten = () =>
    existsSync(join(path, 'child')) && existsSync(join(path, 'first')) && pidIn('child') * pidIn('first') > 0
  return {
    path,
    async pids() {
      await eventually('both have written down who they are', bothWritten)
      return [pidIn('first'), pidIn('child')]
    },
  }
}

function startProcess(t: TestContext, { url, schema }: Fresh, folder: string) {
  const ask: CommandWorkerProgram = { database: url!, schema, folder }
  return startProgram(t, 'commands/programs/worker.js', ask, line => line)
}

test('a worker that is killed takes its commands with it, and the next one sweeps what it left', {
  ...bounded,
  ...needsServer(),
}, async t => {
  const story = await fresh(t)
  const folder = join(ownFolder(t), 'attempts')
  const book = makeBook(t)
  await story.engine.enqueue('command', stubborn(book.path))
  const worker = startProcess(t, story, folder)
  const pids = await book.pids()
  assert.deepEqual(pids.map(isAlive), [true, true])
  worker.signal('SIGKILL')
  await worker.ended
  await eventually('nothing of the command is alive', () => !pids.some(isAlive))
  assert.equal(readdirSync(folder).length, 1)

  mkdirSync(join(folder, 'of-somebody-else'))
  const { id } = await story.engine.enqueue('command', { run: { command: ['true'] } }, { priority: 1 })
  await using _worker = startWorker(story.engine, [commandTask({ files: shelf(), folder })], hurried)
  assert.equal((await ended(story.engine, id)).state, 'succeeded')
  await eventually('only what is not ours is left', () => readdirSync(folder).join() === 'of-somebody-else')
})

test('a hard cancel kills the command as soon as the worker hears of it', bounded, async t => {
  const { engine } = await fresh(t)
  const book = makeBook(t)
  const folder = join(ownFolder(t), 'attempts')
  await using _worker = startWorker(engine, [commandTask({ files: shelf(), folder })], hurried)
  const { id } = await engine.enqueue('command', stubborn(book.path), short)
  const pids = await book.pids()
  await engine.cancel(id, { mode: 'hard' })
  await eventually('nothing of the command is alive', () => !pids.some(isAlive))
  assert.equal((await engine.task(id)).state, 'cancelled')
  await eventually('nor is its folder', () => readdirSync(folder).length === 0)
})

test('a soft cancel reaches a command as SIGTERM, with the grace of its task', bounded, async t => {
  const { engine } = await fresh(t)
  const folder = join(ownFolder(t), 'attempts')
  await using _worker = startWorker(engine, [commandTask({ files: shelf(), folder })], hurried)
  const polite = 'trap "echo so be it; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
  const [good, bad] = await engine.enqueueMany([
    // Its lease must not run out while the machine is busy: a lost lease would end the task as cancelled.
    { type: 'command', payload: { run: { command: ['sh', '-c', polite] } }, leaseSeconds: 60, heartbeatSeconds: 5 },
    { type: 'command', payload: stubborn(makeBook(t).path), ...short, graceSeconds: 1 },
  ])
  for (const { id } of [good!, bad!]) {
    await eventually('it runs', async () => (await engine.task(id)).state === 'running')
  }
  await eventually('it is ready', async () => (await engine.logs(good!.id)).items.length > 0)
  for (const { id } of [good!, bad!]) await engine.cancel(id, { mode: 'soft' })
  assert.equal((await ended(engine, good!.id)).state, 'succeeded')
  assert.deepEqual(
    (await engine.logs(good!.id)).items.filter(({ facts }) => facts?.stream === 'stdout').map(({ message }) => message),
    ['ready', 'so be it'],
  )
  assert.equal((await ended(engine, bad!.id)).state, 'cancelled')
})

test('a worker that ends gives its command back, dead', bounded, async t => {
  const { engine } = await fresh(t)
  const book = makeBook(t)
  const folder = join(ownFolder(t), 'attempts')
  const worker = startWorker(engine, [commandTask({ files: shelf(), folder })], { ...hurried, drainSeconds: 0 })
  const { id } = await engine.enqueue('command', stubborn(book.path), short)
  const pids = await book.pids()
  await worker.stop()
  assert.deepEqual(pids.filter(isAlive), [])
  const { state, failures } = await engine.task(id)
  assert.deepEqual([state, failures], ['retrying', 0])
})

test('a step and a reason reach the task’s record', bounded, async t => {
  const { engine } = await fresh(t)
  const folder = join(ownFolder(t), 'attempts')
  await using _worker = startWorker(engine, [commandTask({ files: shelf(), folder })], hurried)
  const once = { ...short, retry: { attempts: 1 } }
  const [late, failed] = await engine.enqueueMany([
    { type: 'command', payload: { run: { command: ['sleep', '1000'] } }, ...once, timeoutSeconds: 1 },
    { type: 'command', payload: { run: { command: ['sh', '-c', 'echo why >&2; exit 9'] } }, ...once },
  ])
  const one = await ended(engine, late!.id)
  assert.deepEqual([one.state, one.deadLetter?.reasonCode, one.deadLetter?.step], ['dead_lettered', 'timeout', 'exec'])
  const other = await ended(engine, failed!.id)
  assert.deepEqual([other.error?.step, other.deadLetter?.step], ['exec', 'exec'])
  assert.match(other.error!.message, /exit code 9.*\nwhy$/s)
})

const filesIn = ({ artifacts = [] }: SyncRequest) => artifacts.map(({ name, state }) => `${name} ${state}`)

test(
  'a command makes one request for its outputs before its report, and none if it has no outputs',
  bounded,
  async t => {
    const { engine } = await fresh(t)
    const outbox = await fileFolder(t)
    const port = faultyPort(engine)
    const task = commandTask({ files: openFiles(), folder: join(ownFolder(t), 'attempts') })
    await using _worker = startWorker(port, [task], hurried)
    const payload = (text: string) => ({ run: { command: ['sh', '-c', text] }, inputs: [], outputs: outbox.uri })
    const { id: without } = await engine.enqueue('command', payload('true'))
    assert.equal((await ended(engine, without)).state, 'succeeded')
    assert.deepEqual(port.asked.flatMap(filesIn), [])

    const { id } = await engine.enqueue('command', payload('cd "$PAWL_OUT"; echo one > a; echo two > b'))
    assert.equal((await ended(engine, id)).state, 'succeeded')
    const asked = port.asked.filter(request => filesIn(request).length > 0)
    assert.deepEqual(asked.map(filesIn), [
      ['a registered', 'b registered'],
      ['a uploaded', 'b uploaded'],
    ])
    assert.deepEqual(
      asked.map(({ settled = [] }) => settled.map(({ outcome }) => outcome)),
      [[], ['succeeded']],
    )
    const { items } = await engine.taskArtifacts(id)
    assert.deepEqual(items.map(({ name, state }) => [name, state]).toSorted(), [
      ['a', 'uploaded'],
      ['b', 'uploaded'],
    ])
  },
)

for (const [fault, faults] of Object.entries({
  'does not arrive': { losesRequest: theFirst(2, ({ settled }: SyncRequest) => settled !== undefined) },
  'arrives without an answer': { losesAnswer: theFirst(2, ({ settled }: SyncRequest) => settled !== undefined) },
})) {
  test(`a report with outputs that ${fault} is sent again, and its files count once`, bounded, async t => {
    const { engine } = await fresh(t)
    const outbox = await fileFolder(t)
    const task = commandTask({ files: openFiles(), folder: join(ownFolder(t), 'attempts') })
    const worker = startWorker(faultyPort(engine, faults), [task], hurried)
    const run = { command: ['sh', '-c', 'echo one > "$PAWL_OUT/a"'] }
    const { id } = await engine.enqueue('command', { run, inputs: [], outputs: outbox.uri })
    const { state, epoch, failures } = await ended(engine, id)
    await worker.stop()
    assert.deepEqual([state, epoch, failures, worker.inHand()], ['succeeded', 1, 0, 0])
    const { items } = await engine.taskArtifacts(id)
    assert.deepEqual(
      items.map(({ name, state, size }) => [name, state, size]),
      [['a', 'uploaded', 4]],
    )
  })
}
