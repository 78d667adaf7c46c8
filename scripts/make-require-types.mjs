// Copies the types of every entry point to dist/require, where they count as CommonJS. Node can `require` the ES modules
// of this package, but under `module: node16` TypeScript believes so only if the types do not say that they are ES modules.
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const dist = fileURLToPath(new URL('../dist', import.meta.url))
const copies = join(dist, `require-${process.pid}.part`)
const { exports } = JSON.parse(readFileSync(join(dist, '../package.json'), 'utf8'))
const entries = Object.values(exports).flatMap(entry => entry.require?.types ?? [])

const seen = new Set()
for (const entry of entries) copy(join(dist, relative('dist/require', entry)))
writeFileSync(join(copies, 'package.json'), '{ "type": "commonjs" }\n')
rmSync(join(dist, 'require'), { recursive: true, force: true })
renameSync(copies, join(dist, 'require'))

/** Copies a file of types, and those that it imports. */
function copy(file) {
  if (seen.has(file)) return
  seen.add(file)
  const text = readFileSync(file, 'utf8')
  const target = join(copies, relative(dist, file))
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, asModules(text))
  for (const [, path] of text.matchAll(/(?:from |import\()['"](\.[^'"]+)\.[jt]s['"]/g)) {
    copy(join(dirname(file), `${path}.d.ts`))
  }
}

/** TypeBox has only ES modules, and says so in its types. */
function asModules(text) {
  return text
    .replace(/^(import type .* from 'typebox');/gm, "$1 with { 'resolution-mode': 'import' };")
    .replaceAll('import("typebox")', `import("typebox", { with: { "resolution-mode": "import" } })`)
}
