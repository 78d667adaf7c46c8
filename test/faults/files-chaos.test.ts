/** Many files through a command, while workers and servers are killed, uploads fail, and zombies come back. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sweepUploads } from '../../src/babysitter/chores.ts'
import { openFolder } from '../../src/commands/attempt-folder.ts'
import type { CommandOutput } from '../../src/commands/command-task.ts'
import type { Page, TaskView } from '../../src/protocol/tasks/tasks.ts'
import type { Asked, Fault } from '../files/small-s3.ts'
import { commandFleet, type Fleet, fill, hurried, textsIn } from '../harness/command-fleet.ts'
import { type Dice, dice, seed } from '../harness/dice.ts'
import { eventually } from '../harness/eventually.ts'
import type { Program } from '../harness/program.ts'

/** Each becomes two files. To run it by hand, in a quarter of an hour: PAWL_CHAOS_FILES=10000 */
const count = Number(process.env.PAWL_CHAOS_FILES ?? 200)
const minutes = Math.max(5, count / 50)

/** Each attempt writes different bytes, so that their origin can be told. */
const script = `for file in "$PAWL_IN"/doc/*; do
  name=$(basename "$file")
  { cat "$file"; echo " by $$ at $(date +%s%N)"; } > "$PAWL_OUT/$name"
  mkdir "$PAWL_OUT/long" && { cat "$file" "$file"; } > "$PAWL_OUT/long/$name"
done`

test(`workers killed, uploads failing, zombies: each output exactly once with the right bytes, and no orphan`, {
  timeout: minutes * 60_000,
}, async t => {
  const fleet = await commandFleet(t)
  const { engine, bucket, s3 } = fleet
  const names = Array.from({ length: count }, (_, n) => `doc ${n}.txt`)
  await fill(t, bucket, Object.fromEntries(names.map(name => [`in/${name}`, `${name};`])))
  const run = { command: ['sh', '-c', script] }
  const retry = { attempts: 100, losses: 1000, delaySeconds: 0 }
  const inputs = { doc: { uri: 's3://bucket/in/' } }
  const { id } = await engine.submit({
    name: 'chaos',
    stages: [{ name: 'copy', run, inputs, outputs: 's3://bucket/out/', ...hurried, retry }],
  })
  s3.fault = spells(dice(seed))
  const zombies = await untilItEnds(fleet, id)
  assert.ok(zombies.length > 0, 'no zombie came back')
  s3.fault = () => undefined

  const { state, stages } = await engine.job(id)
  assert.equal(state, 'succeeded', JSON.stringify(stages[0]!.error))
  const tasks = await everything(cursor => engine.tasks({ jobId: id, limit: 1000, ...cursor }))
  assert.deepEqual(new Set(tasks.map(task => task.state)), new Set(['succeeded']))
  assert.equal(tasks.length, count)
  await assertExactlyOnce(fleet, id, tasks)

  // Uploads of a zombie come late: they arrive long after its attempt was swept.
  await fill(t, bucket, { [`out/.pawl/${zombies[0]!.id}/${zombies[0]!.epoch}/late`]: 'x' })
  for (const seconds of [61, 601]) {
    await fleet.advance(seconds)
    while ((await sweepUploads.run(engine.context)).swept !== 0);
  }
  assert.deepEqual(await textsIn(bucket, 'out/.pawl/'), {}, 'no orphan')
  assert.deepEqual([...s3.uploads], [])
  await openFolder(fleet.folder)
  assert.deepEqual(await readdir(fleet.folder), [], 'nor on the disks of the workers')
})

/** The bucket holds exactly the files of each datum's winner, and the ledger says the same. */
async function assertExactlyOnce({ engine, bucket }: Fleet, jobId: string, tasks: readonly TaskView[]) {
  const texts = await textsIn(bucket, 'out/')
  const really = Object.entries(texts).filter(([path]) => !path.startsWith('.pawl/'))
  for (const [path, text] of really) {
    const name = path.replace('long/', '')
    if (path === name) assert.match(text, new RegExp(`^${name}; by \\d+ at \\d+\n$`))
    else assert.equal(text, `${name};${name};`)
  }
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
  const facts = really
    .map(([path, text]) => [`s3://bucket/out/${path}`, text.length, sha256(text)].join(' '))
    .toSorted()
  const factsOf = (files: readonly { uri: string; size: number | null; sha256: string | null }[]) =>
    files.map(({ uri, size, sha256 }) => [decodeURIComponent(uri), size, sha256].join(' ')).toSorted()
  assert.deepEqual(
    facts,
    factsOf(tasks.flatMap(({ output }) => (output as CommandOutput).files)),
    'as the winners said',
  )

  const stored = await everything(cursor => engine.jobArtifacts(jobId, { limit: 1000, state: 'stored', ...cursor }))
  assert.deepEqual(facts, factsOf(stored), 'the ledger is the bucket')
  const epochs = new Map(tasks.map(({ id, epoch }) => [id, epoch]))
  for (const { taskId, epoch } of stored) assert.equal(epoch, epochs.get(taskId), 'a file counts that lost')
  const others = await engine.jobArtifacts(jobId, { state: ['registered', 'uploaded', 'error'] })
  assert.deepEqual(others.items, [])
}

async function everything<T>(read: (cursor: { cursor?: string }) => Promise<Page<T>>): Promise<T[]> {
  const all: T[] = []
  for (let page = await read({}); ; page = await read({ cursor: page.next! })) {
    all.push(...page.items)
    if (page.next === null) return all
  }
}

/** Requests for an object fail for a while: once, a few times, or so often that the attempt fails. */
function spells(chance: Dice): (asked: Asked) => Fault | undefined {
  const faults: readonly Fault[] = [
    'cut',
    'lose',
    'lose',
    { status: 500, code: 'InternalError' },
    { cutAfter: 3 },
    { flip: true },
  ]
  const cast = new Map<string, { fault: Fault; left: number }>()
  return ({ method, key, query }) => {
    const what = `${method} ${key} ${query}`
    const spell = cast.get(what) ?? { fault: chance.among(faults)!, left: lengthOf(chance) }
    spell.left -= 1
    if (spell.left > 0) cast.set(what, spell)
    else cast.delete(what)
    return spell.left < 0 ? undefined : spell.fault
  }
}

function lengthOf(chance: Dice): number {
  const thrown = chance.throw()
  if (thrown > 0.05) return 0
  return thrown < 0.003 ? 25 : 1 + Math.floor(chance.throw() * 6)
}

type Attempt = Pick<TaskView, 'id' | 'epoch'>

/**
 * Kills, stops and resumes workers until the job has ended. Returns the tasks that zombies held while others did them.
 */
async function untilItEnds(fleet: Fleet, jobId: string): Promise<Attempt[]> {
  const chance = dice(seed + 1)
  const members = [1, 2, 3, 4].map(n => () => fleet.startWorker(`w${n}`, { args: ['--concurrency', '3'] }))
  const running = members.map(start => start())
  let server = fleet.startServer()
  const zombies: Attempt[] = []
  const stopped = new Set<number>()
  const stopping = new AbortController()
  const ends = fleet.jobEnds(jobId, minutes * 60 - 30).finally(() => stopping.abort())
  const waking: Promise<void>[] = [ends.then(() => {})]
  for (let turn = 0; !stopping.signal.aborted; turn++) {
    // Longer than a program takes to start on a busy machine; otherwise nothing would ever be done.
    await sleep(2000 + chance.throw() * 2500)
    const at = Math.floor(chance.throw() * members.length)
    // Rarely, because a babysitter that has just started waits before it considers any worker lost.
    if (turn % 40 === 5) server = await again(server, fleet.startServer)
    else if (stopped.has(at) || running[at]!.lines.length === 0) continue
    else if (turn % 4 === 1 && stopped.size < 2) {
      stopped.add(at)
      const woken = zombie(fleet, running[at]!, `w${at + 1}`, zombies).finally(() => stopped.delete(at))
      woken.catch(() => stopping.abort())
      waking.push(woken)
    } else running[at] = await again(running[at]!, members[at]!)
  }
  await Promise.all(waking)
  for (const program of [...running, server]) {
    program.signal('SIGTERM')
    await program.ended
  }
  return zombies
}

async function again(program: Program<string>, start: () => Program<string>): Promise<Program<string>> {
  program.signal('SIGKILL')
  await program.ended
  return start()
}

/** Stopped in the middle of its datums, and resumed when others have done all of them. */
async function zombie({ engine }: Fleet, program: Program<string>, owner: string, zombies: Attempt[]): Promise<void> {
  const inHand = async () => (await engine.tasks({ state: 'running' })).items.filter(task => task.owner === owner)
  await eventually(`${owner} works`, async () => (await inHand()).length > 0, 5).catch(() => {})
  program.signal('SIGSTOP')
  const held = await inHand()
  const check = async () => {
    const tasks = await Promise.all(held.map(({ id }) => engine.task(id)))
    return tasks.every(({ state }) => state === 'succeeded') && tasks
  }
  const done = await eventually('what it held is done', check, minutes * 60)
  program.signal('SIGCONT')
  zombies.push(...held.filter(({ epoch }, index) => done[index]!.epoch > epoch))
}
