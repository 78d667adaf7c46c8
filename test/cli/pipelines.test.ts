/** Pipelines in the settings: named once, submitted by name. */
import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { JobView } from '../../src/protocol/jobs/jobs.ts'
import { cli } from '../harness/cli.ts'

/** The embedded store takes a second to open, and on a busy machine many. */
const bounded = { timeout: 590_000 }

test(
  'a pipeline of the settings, in a file of its own or as it is, is submitted by its name: to a server and to a store',
  bounded,
  async t => {
    const pawl = await cli(t)
    await mkdir(join(pawl.folder, 'settings'))
    await writeFile(join(pawl.folder, 'settings/night.yaml'), 'name: night\nstages: [{ name: print, task: print }]\n')
    await writeFile(
      join(pawl.folder, 'settings/pawl.config.ts'),
      `import { defineConfig } from 'pawl'
       export default defineConfig({ data: '../data', pipelines: {
         nightly: './night.yaml',
         inline: { name: 'inline', stages: [{ name: 'a', task: 'a' }] },
       } })`,
    )
    const env = { PAWL_CONFIG: 'settings/pawl.config.ts' }
    const server = pawl.start(['up', '--json', '--port', '0'], { env })
    const { url } = JSON.parse(await server.printed('where it serves', line => line.includes('url')))
    const submit = (...words: string[]) => pawl.run(['job', 'run', '--json', ...words], { env })
    const night = await submit('--server', url, '--pipeline', 'nightly', '--input', '{"pages": 2}')
    const { name, input } = night.json() as JobView
    assert.deepEqual([night.code, name, input], [0, 'night', { pages: 2 }])
    assert.equal(((await submit('--server', url, '--pipeline', 'inline')).json() as JobView).name, 'inline')
    server.signal('SIGTERM')
    await server.ended

    const store = ['--data', 'data']
    assert.equal(((await submit(...store, '--pipeline', 'nightly')).json() as JobView).name, 'night')
    const unknown = await submit(...store, '--pipeline', 'nihgtly')
    assert.equal(unknown.code, 1)
    assert.deepEqual(JSON.parse(unknown.err).details.didYouMean, 'nightly')
    for (const words of [[], ['night.yaml', '--pipeline', 'nightly']]) assert.equal((await submit(...words)).code, 2)
  },
)

test('a pipeline that cannot be run is told when the server starts, by its name', bounded, async t => {
  const pawl = await cli(t)
  await writeFile(join(pawl.folder, 'pawl.config.json'), '{ "pipelines": { "nightly": { "name": "x" } } }')
  const { code, err } = await pawl.run(['up', '--port', '0', '--json'])
  assert.equal(code, 2)
  assert.equal(JSON.parse(err).details.pipeline, 'nightly')
  await writeFile(join(pawl.folder, 'pawl.config.json'), '{ "pipelines": { "nightly": 7 } }')
  assert.match(
    (await pawl.run(['config'])).err,
    /pipelines must have a pipeline "nightly" that must be a non-empty string/,
  )
})
