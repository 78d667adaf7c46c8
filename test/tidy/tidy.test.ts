/** The rules of the code base: allowed imports, the length of files, generated files that are up to date. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { generatedDocs } from '../../scripts/generated-docs.ts'
import { findRoot } from '../../scripts/job-schema-page.ts'
import { layers, rootImports } from '../../scripts/layers.ts'

const root = findRoot(import.meta.dirname)

/** A folder may import from itself and from these folders. `.` is src/index.ts. */
const mayImport: Record<string, readonly string[]> = {
  ...Object.fromEntries(layers.map(({ folder, imports }) => [folder, imports])),
  '.': rootImports,
}

/** Dependencies, and the folders that may use them. */
const mayUse: Record<string, readonly string[]> = {
  pg: ['store'],
  // The wire protocol, which `pg` and PGlite speak.
  'pg-protocol': ['store'],
  '@electric-sql/pglite': ['store'],
  'fs-native-extensions': ['store'],
  '@standard-schema/spec': ['protocol', 'worker'],
  fastify: ['server'],
  // Used by fastify. Its later versions depend on a package that refuses Node 20. npm then installs only this version;
  // other package managers may still print the warning.
  'light-my-request': [],
  // For its types only: a worker and a client load none of it.
  typebox: ['schema'],
  jiti: ['config'],
  yaml: ['spec', 'runners'],
  '@kubernetes/client-node': ['runners'],
  '@marcbachmann/cel-js': ['spec'],
  re2js: ['files', 'spec'],
  // A trace begins where a task is queued and continues where it runs. Both use protocol/tracing.ts.
  '@opentelemetry/api': ['protocol', 'engine', 'worker'],
  'prom-client': ['server'],
  '@aws-sdk/client-s3': ['files'],
}

const sources = listFiles('src').filter(file => file.endsWith('.ts') && !file.endsWith('.test.ts'))
const everything = [...listFiles('src'), ...listFiles('test'), ...listFiles('scripts')].filter(file =>
  /\.m?ts$/.test(file),
)

test('imports point down, and packages stay in their rooms', () => {
  const faults = sources.flatMap(file => {
    const folder = folderOf(file)
    return importsOf(file).flatMap(({ from, isType }) => {
      if (from.startsWith('.')) {
        const target = folderOf(relative(root, join(root, dirname(file), from)))
        const isFine = target === folder || mayImport[folder]?.includes(target)
        return isFine ? [] : [`${file} may not import ${from}`]
      }
      const name = from.replace(/^node:/, '')
      if (builtinModules.includes(name))
        return folder === 'kernel' ? [`${file}: the kernel is pure, but uses ${from}`] : []
      return mayUse[packageOf(from)]?.includes(folder) || (isType && from === '@standard-schema/spec')
        ? []
        : [`${file} may not use ${from}`]
    })
  })
  assert.deepEqual(faults, [])
})

test('the table of layers has every folder of src, and is in ARCHITECTURE.md', () => {
  const folders = new Set(sources.map(folderOf))
  folders.delete('.')
  assert.deepEqual(layers.map(({ folder }) => folder).sort(), [...folders].sort())
  assert.match(readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8'), /<!-- layers -->\n.*<!-- end of layers -->/s)
})

test('every file that README, ARCHITECTURE and CONTRIBUTING name exists', () => {
  const pages = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md']
  const named = pages.flatMap(page =>
    [
      ...readFileSync(join(root, page), 'utf8').matchAll(
        /`((?:src|test|scripts|kernel|engine|store|protocol|server|dialects|babysitter)\/[\w./-]*)`/g,
      ),
    ].map(match => match[1]!),
  )
  assert.ok(named.length > 50, 'the search finds paths')
  // A path may begin at the root or in src.
  const missing = named.filter(path => !existsSync(join(root, path)) && !existsSync(join(root, 'src', path)))
  assert.deepEqual(missing, [])
})

test('a worker and a client need no package of the server’s or the store’s', () => {
  for (const entry of ['src/worker/index.ts', 'src/client/index.ts']) {
    const { files, packages } = reachedFrom(entry)
    // It does nothing unless the program sets up tracing.
    const others = packages.filter(name => name !== '@opentelemetry/api')
    assert.deepEqual(others, [], `${entry} loads packages`)
    const rooms = new Set(files.map(folderOf))
    for (const room of ['server', 'engine', 'store', 'spec', 'babysitter']) {
      assert.ok(!rooms.has(room), `${entry} loads src/${room}: ${files.filter(file => folderOf(file) === room)}`)
    }
  }
  // Proves that the search finds packages at all.
  assert.ok(reachedFrom('src/server/index.ts').packages.includes('fastify'))
})

test('no file is longer than 300 lines, no line of code longer than 160 characters', () => {
  const faults = everything.flatMap(file => {
    const lines = readFileSync(join(root, file), 'utf8').split('\n')
    const long = lines.findIndex(line => line.length > 160)
    return [
      ...(lines.length > 301 ? [`${file}: ${lines.length} lines`] : []),
      ...(long >= 0 ? [`${file}:${long + 1} is too long`] : []),
    ]
  })
  assert.deepEqual(faults, [])
})

test('files are named for what they hold, not utils or helpers', () => {
  const vague = /(^|\/)(utils?|helpers?|common|manager|service|types|misc)\.ts$/
  assert.deepEqual(
    everything.filter(file => vague.test(file) || /[A-Z_]/.test(file.replace(/^.*\//, ''))),
    [],
  )
})

test('SQL is spoken in the store only', () => {
  const speaks = /\b(sql|tx)(<[^`;]*>)?`/
  const faults = sources.filter(
    file => folderOf(file) !== 'store' && speaks.test(readFileSync(join(root, file), 'utf8')),
  )
  assert.deepEqual(faults, [])
})

test('nothing is left for later, switched off, or commented out', () => {
  const mark = new RegExp(
    `\\b(${['TO', 'FIX'].map((word, index) => word + ['DO', 'ME'][index]).join('|')})\\b|\\.(only|todo)\\(`,
  )
  assert.deepEqual(
    everything.filter(file => mark.test(readFileSync(join(root, file), 'utf8'))),
    [],
  )
})

test('comments name their subject: none starts with What, Who, Whoever, Of, So many, One that or Those', () => {
  const riddle = /^\s*(?:\/\/|\/\*\*?|\*)\s*(?:What|Who|Whoever|Of|So many|One that|Those)\b/
  const folders = ['src', 'test', 'scripts', 'bench', 'dashboard/src']
  const files = folders
    .flatMap(listFiles)
    .filter(file => /\.(m?[tj]s|tsx)$/.test(file) && !/\bnode_modules\b/.test(file))
  const faults = files.flatMap(file => {
    // Lines inside a comment are only checked at its start: a sentence may continue with these words.
    const lines = readFileSync(join(root, file), 'utf8').split('\n')
    return lines.flatMap((line, index) => {
      const isContinued = /^\s*(?:\/\/|\*)/.test(line) && /^\s*(?:\/\/|\*|\/\*\*.)/.test(lines[index - 1] ?? '')
      return riddle.test(line) && !isContinued ? [`${file}:${index + 1}`] : []
    })
  })
  assert.deepEqual(faults, [])
})

test('names say what they hold: nothing is called said, told, heard, says, look, looking, came, hands, judge or bell', () => {
  const riddle =
    /^\s*(?:export )?(?:const|let|(?:async )?function|type|interface|class)\s+\W?(?:said|told|hear[ds]|says|look(?:s|ing)?|came|hands|judge|bell)\b/i
  const faults = everything.flatMap(file =>
    readFileSync(join(root, file), 'utf8')
      .split('\n')
      .flatMap((line, index) => (riddle.test(line) ? [`${file}:${index + 1}`] : [])),
  )
  assert.deepEqual(faults, [])
})

for (const [path, text] of Object.entries(generatedDocs())) {
  test(`${path} is what the code says`, () => {
    const kept = existsSync(join(root, path)) ? readFileSync(join(root, path), 'utf8') : ''
    assert.equal(kept, text, `${path} is stale: npm run docs`)
  })
}

test('every dependency is used, and every one used is declared', () => {
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const declared = Object.keys({ ...dependencies, ...peerDependencies })
  assert.deepEqual(declared.sort(), Object.keys(mayUse).sort())
})

/** The package of an import such as `pg-protocol/dist/parser.js`. */
function packageOf(from: string): string {
  return from
    .split('/')
    .slice(0, from.startsWith('@') ? 2 : 1)
    .join('/')
}

function listFiles(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => relative(root, join(entry.parentPath ?? entry.path, entry.name)))
}

function folderOf(file: string): string {
  const [, second, third] = file.split('/')
  return third === undefined ? '.' : second!
}

/** The files and packages that are loaded when a program imports this file. Type imports load nothing. */
function reachedFrom(entry: string): { files: string[]; packages: string[] } {
  const files = new Set([entry])
  const packages = new Set<string>()
  for (const file of files) {
    for (const { from, isType } of importsOf(file)) {
      if (isType) continue
      if (from.startsWith('.')) files.add(relative(root, join(root, dirname(file), from)))
      else if (!builtinModules.includes(from.replace(/^node:/, ''))) packages.add(from)
    }
  }
  return { files: [...files], packages: [...packages].sort() }
}

function importsOf(file: string): { from: string; isType: boolean }[] {
  const text = readFileSync(join(root, file), 'utf8')
  return [...text.matchAll(/^(?:import|export)\s(type\s)?[^'"]*?from\s'([^']+)'/gm)].map(match => ({
    from: match[2]!,
    isType: match[1] !== undefined,
  }))
}
