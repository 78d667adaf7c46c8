import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openEmbedded } from './embedded.ts'
import { readEmptyStore, unpackStore } from './empty-store.ts'

const identity = 'select system_identifier::text from pg_control_system()'

function folder(t: { after(work: () => void): void }): string {
  const path = mkdtempSync(join(tmpdir(), 'pawl-empty-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}

test('a new store is unpacked rather than made, and is a system of its own', async t => {
  assert.ok(readEmptyStore(), 'the build has made one')
  const parent = folder(t)
  const seen = new Set<unknown>()
  for (const place of [join(parent, 'a'), join(parent, 'b'), undefined, undefined]) {
    const store = await openEmbedded(place)
    t.after(() => store.close())
    const { rows } = await store.driver.query(identity, [])
    seen.add(rows[0]![0])
  }
  assert.equal(seen.size, 4)
})

test('a store keeps its identity, and what was written, from one start to the next', async t => {
  const place = join(folder(t), 'data')
  const found: unknown[] = []
  for (let start = 0; start < 2; start++) {
    const store = await openEmbedded(place)
    if (start === 0) await store.driver.script('create table kept as select 7 as n')
    found.push((await store.driver.query(`select n, (${identity}) from kept`, [])).rows)
    await store.close()
  }
  assert.deepEqual(found[0], found[1])
})

test('a start that was killed while the store was made leaves nothing that hinders the next', async t => {
  const place = folder(t)
  unpackStore(place)
  rmSync(join(place, 'PG_VERSION'))
  rmSync(join(place, 'base'), { recursive: true })
  writeFileSync(join(place, 'global', 'pg_control'), 'half')
  writeFileSync(join(place, 'being-made'), '')
  const store = await openEmbedded(place)
  t.after(() => store.close())
  assert.deepEqual((await store.driver.query('select 1', [])).rows, [[1]])
  assert.equal(existsSync(join(place, 'being-made')), false)
})

test('a folder with something else in it is never written over', t => {
  const place = folder(t)
  writeFileSync(join(place, 'letters.txt'), 'dear')
  unpackStore(place)
  assert.deepEqual(readdirSync(place), ['letters.txt'])
})
