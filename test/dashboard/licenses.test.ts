import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { build } from 'vite'
import { findRoot } from '../../scripts/job-schema-page.ts'

const root = findRoot(import.meta.dirname)

test('the dashboard comes with the license text of every package that is bundled into it', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-licenses-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const bundled = new Set<string>()
  await build({
    configFile: join(root, 'dashboard/vite.config.ts'),
    logLevel: 'error',
    build: { outDir: folder, emptyOutDir: true },
    plugins: [
      {
        name: 'note-packages',
        generateBundle(_, bundle) {
          const scripts = Object.values(bundle).flatMap(part =>
            part.type === 'chunk' ? Object.keys(part.modules) : [],
          )
          const styles = [...this.getModuleIds()].filter(id => id.includes('.css'))
          for (const id of [...scripts, ...styles]) {
            const name = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1]
            if (name !== undefined) bundled.add(name)
          }
        },
      },
    ],
  })
  assert.ok(bundled.has('react') && bundled.has('@mantine/core'))
  const sections = readFileSync(join(folder, 'LICENSES.md'), 'utf8').split(/^## /m)
  for (const name of bundled) {
    const section = sections.find(text => text.startsWith(`${name} - `))
    assert.ok(section, `${name} is not listed`)
    assert.ok(section.length > 300, `${name} is listed without the text of its license`)
  }
})

test('the npm package contains the licenses of the bundled packages', t => {
  if (!existsSync(join(root, 'dist/dashboard'))) return t.skip('the dashboard is not built: run `npm run build`')
  const listed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [{ files }] = JSON.parse(listed) as [{ files: { path: string }[] }]
  const paths = files.map(({ path }) => path)
  assert.ok(paths.includes('dist/dashboard/LICENSES.md'))
  assert.ok(paths.includes('LICENSE'))
})
