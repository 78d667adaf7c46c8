/** Nothing that a handler throws, and no fault of a log, ends the process of a worker. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { ended } from '../../test/harness/eventually.ts'
import { fresh } from '../../test/harness/fresh.ts'
import { served } from '../../test/harness/served.ts'
import { connect } from '../client/client.ts'
import type { SyncPort } from '../protocol/tasks/sync.ts'
import { defineTask } from './define-task.ts'
import { RetryIn } from './errors.ts'
import { startWorker } from './worker.ts'

/** Even `Array.isArray` and `instanceof` throw. */
function revoked(): object {
  const { proxy, revoke } = Proxy.revocable([], {})
  revoke()
  return proxy
}

/** Every trap throws. */
function trapped(): object {
  const refuse = () => {
    throw new Error('not for you')
  }
  return new Proxy(new Error('hidden'), new Proxy({}, { get: () => refuse }))
}

test('a worker survives a handler that throws a value that cannot be read', async t => {
  const { engine } = await fresh(t)
  const hostile: Record<string, () => unknown> = {
    revoked,
    trapped,
    cause: () => new Error('outer', { cause: revoked() }),
    errors: () => new AggregateError([revoked(), trapped()], 'outer'),
    seconds: () =>
      Object.defineProperty(new RetryIn(1, 'outer'), 'seconds', {
        get() {
          throw trapped()
        },
      }),
  }
  const work = defineTask({
    type: 'work',
    retry: { attempts: 1 },
    handler: (kind: string) => {
      const make = hostile[kind]
      if (make !== undefined) throw make()
      return 'well'
    },
  })
  await using _worker = startWorker(engine, [work], { log: () => {} })
  for (const kind of Object.keys(hostile)) {
    const { id } = await engine.enqueue(work, kind)
    const { state, error } = await ended(engine, id)
    const message = kind === 'revoked' || kind === 'trapped' ? 'The thrown value could not be read.' : 'outer'
    assert.deepEqual([kind, state, error?.message], [kind, 'dead_lettered', message])
  }
  const { id } = await engine.enqueue(work, 'calm')
  assert.equal((await ended(engine, id)).output, 'well')
})

test('a worker survives an output that throws such a value when it is read', async t => {
  const { engine, server } = await served(t)
  const { secret } = await engine.createKey({ name: 'w', roles: ['worker'] })
  const client = connect({ server: server.url, key: secret })
  t.after(() => client.close())
  for (const [type, port] of [
    ['here', engine],
    ['remote', client],
  ] as const) {
    const outputs = {
      toJSON() {
        throw revoked()
      },
    }
    const work = defineTask({ type, handler: (n: number) => (n === 1 ? outputs : 'well') })
    await using _worker = startWorker(port, [work], { log: () => {} })
    const { id } = await engine.enqueue(work, 1)
    assert.deepEqual([type, (await ended(engine, id)).state], [type, 'dead_lettered'])
    const { id: next } = await engine.enqueue(work, 2)
    assert.equal((await ended(engine, next)).output, 'well')
  }
})

for (const [how, fail] of Object.entries({
  throws: () => {
    throw new Error('the log is full')
  },
  rejects: () => Promise.reject(new Error('the log is full')),
})) {
  test(`a log that ${how} breaks neither the worker nor its reports`, async t => {
    const { engine } = await fresh(t)
    const warnings = t.mock.method(process, 'emitWarning', () => {})
    let reports = 0
    const port: SyncPort = {
      putTaskType: engine.putTaskType,
      sync(request, signal) {
        reports += request.settled?.length ?? 0
        return engine.sync(request, signal)
      },
    }
    const work = defineTask({
      type: 'work',
      retry: { attempts: 2, delaySeconds: 0 },
      handler: () => {
        throw new Error('no')
      },
    })
    const held: number[] = []
    const log = (event: string) => {
      if (event === 'task.failed') held.push(worker.inHand())
      return fail()
    }
    const worker = startWorker(port, [work], { log })
    const { id } = await engine.enqueue(work, null)
    const { state, failures } = await ended(engine, id)
    await worker.stop()
    assert.deepEqual([state, failures, reports, worker.inHand()], ['dead_lettered', 2, 2, 0])
    assert.deepEqual(held, [0, 0], 'the attempt is no longer held when its failure is logged')
    const warned = warnings.mock.calls.map(({ arguments: [text] }) => text)
    assert.deepEqual(warned, ['The log of a Pawl worker failed: the log is full'])
  })
}

test('a worker whose standard error was closed goes on', async () => {
  const program = `
    import { printFailures } from ${JSON.stringify(new URL('./failure-log.js', import.meta.url).href)}
    process.stdin.once('data', () => {
      for (let n = 0; n < 3; n++) printFailures('task.failed', { type: 'work', id: n, attempt: 1, message: 'no' })
      setImmediate(() => setImmediate(() => process.stdout.write('alive ' + process.stderr.listenerCount('error'))))
      process.stdin.destroy()
    })
    process.stdout.write('ready ')`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program])
  child.stdin.on('error', () => {})
  let output = ''
  child.stdout.on('data', part => {
    if (output === '') child.stderr.once('close', () => child.stdin.write('go')).destroy()
    output += part
  })
  const [code] = await once(child, 'close')
  assert.deepEqual([code, output], [0, 'ready alive 0'])
})
