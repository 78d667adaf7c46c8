/** The watcher of `pawl dev`, on folders that are moved and replaced, as a change of branches does. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { watchSources } from '../../src/cli/dev/watch-sources.ts'
import { eventually } from '../harness/eventually.ts'

const bounded = { timeout: 590_000 }

function watched(t: TestContext) {
  const place = mkdtempSync(join(tmpdir(), 'pawl-watch-'))
  const at = (name: string) => join(place, name)
  mkdirSync(at('project/a/b/c'), { recursive: true })
  const seen = new Set<string>()
  const watching = watchSources(at('project'), {
    except: [],
    onChange(files) {
      for (const file of files) seen.add(file)
    },
    onError: error => assert.fail(error),
  })
  t.after(() => {
    watching.close()
    rmSync(place, { recursive: true, force: true })
  })
  return { at, seen }
}

test('after a folder was replaced, changes in the folders in it are seen', bounded, async t => {
  const { at, seen } = watched(t)
  mkdirSync(at('new/b/c'), { recursive: true })
  writeFileSync(at('new/b/c/one.ts'), '')
  renameSync(at('project/a'), at('old'))
  renameSync(at('new'), at('project/a'))
  await eventually('the file that came with it is seen', () => seen.has('a/b/c/one.ts'))
  writeFileSync(at('project/a/b/c/two.ts'), '')
  await eventually('and so is a new one', () => seen.has('a/b/c/two.ts'))
})

test('a folder that was moved away is no longer watched', bounded, async t => {
  const { at, seen } = watched(t)
  renameSync(at('project/a'), at('old'))
  writeFileSync(at('project/first.ts'), '')
  await eventually('the watcher knows', () => seen.has('first.ts'))
  writeFileSync(at('old/b/c/elsewhere.ts'), '')
  writeFileSync(at('project/second.ts'), '')
  await eventually('a later change is seen', () => seen.has('second.ts'))
  assert.deepEqual([...seen], ['first.ts', 'second.ts'])
})
