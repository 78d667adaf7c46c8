/** A standby is promoted, and a data folder is copied: readers of the feed must not skip or repeat events unnoticed. */
import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Engine, openEngine, type PawlOptions } from '../../src/engine/engine.ts'
import { startCluster } from '../harness/cluster.ts'
import { eventually } from '../harness/eventually.ts'
import { primarySettings, startStandby } from '../harness/standby.ts'

const bounded = { timeout: 600_000 }
const gone = { code: 'CURSOR_GONE', status: 410 }

async function open(t: TestContext, options: PawlOptions): Promise<Engine> {
  const engine = await openEngine(options)
  t.after(() => engine.close())
  return engine
}

const enqueue = (engine: Engine, count: number) =>
  engine.enqueueMany(Array.from({ length: count }, (_, n) => ({ type: 'work', payload: n })))

/** Reads the feed to its end, at this number of events. Returns the last cursor. */
function readAll(engine: Engine, count: number): Promise<string> {
  return eventually(`${count} events are read`, async () => {
    const { items, next } = await engine.events({ limit: 10_000 })
    return items.length === count && next
  })
}

test('after a failover to a standby that had not received everything, every older cursor is gone', bounded, async t => {
  const primary = await startCluster({ version: 18, settings: { fsync: 'off', ...primarySettings } })
  const standby = await startStandby(primary)
  t.after(() => Promise.all([primary.stop(), standby.stop()]))
  const before = await open(t, { database: primary.url })
  await enqueue(before, 10)
  const received = await readAll(before, 10)
  await standby.caughtUp()
  await standby.cutOff()
  await enqueue(before, 134)
  const lost = await readAll(before, 144)

  await primary.kill()
  await standby.promote()
  const after = await open(t, { database: standby.url })
  await enqueue(after, 200)
  for (const cursor of [received, lost]) await assert.rejects(after.events({ cursor }), gone)
  await readAll(after, 210)
})

test(
  'a store that was copied and went on by itself tells readers of the original that their history is gone',
  bounded,
  async t => {
    const root = mkdtempSync(join(tmpdir(), 'pawl-copy-'))
    t.after(() => rmSync(root, { recursive: true, force: true }))
    const [original, copy] = [join(root, 'original'), join(root, 'copy')]
    const first = await openEngine({ folder: original })
    await enqueue(first, 5)
    const early = await readAll(first, 5)
    await first.close()
    cpSync(original, copy, { recursive: true })
    const second = await openEngine({ folder: original })
    await enqueue(second, 15)
    const late = await readAll(second, 20)
    await second.close()

    const copied = await open(t, { folder: copy })
    await enqueue(copied, 15)
    await assert.rejects(copied.events({ cursor: late }), gone)
    // A cursor from before the copy is valid in both.
    assert.equal((await copied.events({ cursor: early })).items.length, 15)
  },
)
