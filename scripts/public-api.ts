/**
 * The types of the package as its users see them: every export of every entry point, then the internal types that those
 * refer to. Comments are removed. A type that is inferred from a constant is shown with its properties, and internal
 * constants are left out. The text is built from the declarations that the compiler emits, so it changes only when a type
 * changes.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { findRoot } from './job-schema-page.ts'

export const publicApiFile = 'test/package/public-api.txt'

const root = findRoot(import.meta.dirname)

interface Declaration {
  readonly path: string
  readonly name: string
}

interface Module {
  /** The text of each top-level declaration, without `export` and `declare`. Overloads share one entry. */
  readonly declarations: Map<string, string>
  /** The declarations that the resolved properties of an inferred type refer to, by the type's name. */
  readonly references: Map<string, readonly Declaration[]>
  /** Names that this module imports, with their origin. */
  readonly imports: ReadonlyMap<string, Declaration>
  /** Names that this module exports, with their origin. */
  readonly exports: ReadonlyMap<string, Declaration>
  /** Modules that it exports as a whole. */
  readonly exportedModules: readonly string[]
}

export function publicApi(): string {
  // Inside the package, so that the declarations find its dependencies.
  const folder = mkdtempSync(join(root, 'node_modules/.pawl-types-'))
  try {
    compile('-p', 'tsconfig.build.json', '--outDir', folder)
    return describe(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function compile(...options: readonly string[]): void {
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  execFileSync(process.execPath, [tsc, ...options, '--declaration', '--emitDeclarationOnly'], { cwd: root })
}

function describe(folder: string): string {
  const { exports: entries } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, string | { import: { types: string } }>
  }
  const modules = new Map(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter(path => path.endsWith('.d.ts'))
      .map(path => [path, parseModule(path, readFileSync(join(folder, path), 'utf8'))]),
  )
  resolveInferred(folder, modules)
  const load = (path: string): Module => modules.get(path)!
  const shown = new Set<string>()
  const internal: Declaration[] = []
  const sections = Object.entries(entries).flatMap(([entry, target]) => {
    if (typeof target === 'string') return []
    const exports = [...exportsOf(target.import.types.replace('./dist/', ''), load)].sort(byName)
    const texts = exports.map(([name, origin]) => {
      const key = `${origin.path} ${origin.name}`
      if (shown.has(key)) return `${name}: see above`
      shown.add(key)
      internal.push(...references(origin, load))
      return textOf(origin, load)
    })
    return [`# ${join('pawl', entry)}`, ...texts]
  })
  const internalTexts: [string, string][] = []
  for (const declaration of internal) {
    const key = `${declaration.path} ${declaration.name}`
    if (shown.has(key)) continue
    shown.add(key)
    internal.push(...references(declaration, load))
    internalTexts.push([`${declaration.name} ${declaration.path}`, textOf(declaration, load)])
  }
  return `${[...sections, '# internal', ...internalTexts.sort(byName).map(([, text]) => text)].join('\n\n')}\n`
}

/** A type without parameters that refers to a constant or is mapped from another type. */
const isInferred = /^(?:type [\w$]+ =.*|interface [\w$]+ extends [^{]*)\b(?:typeof|in keyof) /s

/** Replaces the text of each inferred type by its properties. */
function resolveInferred(folder: string, modules: ReadonlyMap<string, Module>): void {
  const inferred = [...modules].flatMap(([path, { declarations, exports }]) =>
    [...exports.values()].filter(
      origin => origin.path === path && isInferred.test(declarations.get(origin.name)?.replace(/'[^']*'/g, '') ?? ''),
    ),
  )
  const lines = inferred.map(
    ({ path, name }, n) => `export const t${n} = resolve<import('./${path.replace('.d.ts', '.js')}').${name}>()\n`,
  )
  // A mapped type without a name of its own is printed with all of its properties.
  const resolve = 'declare function resolve<Type>(): { [Name in keyof Type]: Type[Name] }\n'
  const file = join(folder, 'resolved.ts')
  writeFileSync(file, resolve + lines.join(''))
  const options = ['--strict', '--exactOptionalPropertyTypes', '--skipLibCheck']
  compile(file, '--ignoreConfig', '--module', 'nodenext', '--target', 'esnext', ...options)
  const { declarations } = parseModule('', readFileSync(join(folder, 'resolved.d.ts'), 'utf8'))
  // The folder is both `.` and a package, whose main module is the entry point.
  const imported = new RegExp(`import\\("(?:\\.|${basename(folder)})(?:/([^"]+)\\.js)?"\\)\\.([\\w$]+)`, 'g')
  for (const [n, { path, name }] of inferred.entries()) {
    const text = declarations.get(`t${n}`)!.replace(/^const \w+:/, `type ${name} =`)
    const module = modules.get(path)!
    const references = [...text.matchAll(imported)].map(([, from = 'index', other]) => ({
      path: `${from}.d.ts`,
      name: other!,
    }))
    module.references.set(name, references)
    module.declarations.set(name, text.replace(imported, '$2'))
  }
}

const byName = ([one]: readonly [string, unknown], [other]: readonly [string, unknown]) => (one < other ? -1 : 1)

function textOf({ path, name }: Declaration, load: (path: string) => Module): string {
  const text = load(path).declarations.get(name)
  if (text === undefined) throw new Error(`${path} does not declare ${name}`)
  return text
}

function exportsOf(path: string, load: (path: string) => Module): Map<string, Declaration> {
  const { exports, exportedModules } = load(path)
  const found = new Map(exportedModules.flatMap(other => [...exportsOf(other, load)]))
  for (const [name, origin] of exports) found.set(name, resolveOrigin(origin, load))
  return found
}

/** The module that declares a name, which may be re-exported several times. */
function resolveOrigin({ path, name }: Declaration, load: (path: string) => Module): Declaration {
  const module = load(path)
  if (module.declarations.has(name)) return { path, name }
  const origin = module.exports.get(name) ?? exportsOf(path, load).get(name)
  if (origin === undefined) throw new Error(`${path} does not export ${name}`)
  return resolveOrigin(origin, load)
}

/** Only Pawl's own code uses `Pawl.context` and the machinery of schemas: their changes are no changes of the API. */
const isHidden = /^(engine\/context|store\/|files\/|schema\/)/

const isShown = (declaration: Declaration, load: (path: string) => Module) =>
  !isHidden.test(declaration.path) && !textOf(declaration, load).startsWith('const ')

/** The declarations of the package that a declaration refers to. */
function references(declaration: Declaration, load: (path: string) => Module): Declaration[] {
  const { declarations, imports, references: known } = load(declaration.path)
  const resolved = known.get(declaration.name)
  if (resolved !== undefined) return resolved.map(each => resolveOrigin(each, load)).filter(each => isShown(each, load))
  const text = textOf(declaration, load).replace(/'[^']*'|"[^"]*"/g, '')
  return [...new Set(text.match(/(?<![\w$.])[A-Za-z_$][\w$]*(?!\??:)/g))].flatMap(name => {
    if (name === declaration.name) return []
    const origin = declarations.has(name) ? { path: declaration.path, name } : imports.get(name)
    return origin === undefined ? [] : [resolveOrigin(origin, load)].filter(each => isShown(each, load))
  })
}

function parseModule(path: string, source: string): Module {
  const declarations = new Map<string, string>()
  const imports = new Map<string, Declaration>()
  const exports = new Map<string, Declaration>()
  const exportedModules: string[] = []
  /** Names that come from packages. */
  const packages = new Map<string, string>()
  for (const statement of statementsIn(source)) {
    const from = /from '(\.[^']+)'/.exec(statement)?.[1]
    const target = from === undefined ? '' : join(dirname(path), from).replace(/\.[jt]s$/, '.d.ts')
    const declared = /^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|const|function|class) ([\w$]+)/.exec(
      statement,
    )
    if (/^export (type )?\*/.test(statement)) exportedModules.push(target)
    else if (/^(import|export) (type )?\{/.test(statement)) {
      for (const [, name, alias] of (/\{(.*)\}/s.exec(statement)?.[1] ?? '').matchAll(
        /(?:type )?([\w$]+)(?: as ([\w$]+))?,?/g,
      )) {
        const names = statement.startsWith('import') ? imports : exports
        const packageName = /from '([^.'][^']*)'/.exec(statement)?.[1]
        if (from !== undefined) names.set(alias ?? name!, { path: target, name: name! })
        else if (packageName !== undefined) packages.set(alias ?? name!, packageName)
        else if (statement.startsWith('export')) exports.set(alias ?? name!, { path, name: name! })
      }
    } else if (declared !== null) {
      const name = declared[1]!
      const text = statement.replace(/^(export )?(declare )?/, '')
      declarations.set(name, [declarations.get(name), text].filter(Boolean).join('\n'))
      if (statement.startsWith('export')) exports.set(name, { path, name })
    }
  }
  for (const name of exports.keys()) {
    const packageName = packages.get(name)
    if (packageName !== undefined) declarations.set(name, `type ${name}: see the package ${packageName}`)
  }
  return { declarations, references: new Map(), imports, exports, exportedModules }
}

/** The top-level statements of a declaration file, without comments. */
function statementsIn(source: string): string[] {
  const lines = source
    .replace(/^\s*\/\*\*.*?\*\/\n/gms, '')
    .replace(/^\s*\/\/.*\n/gm, '')
    .split('\n')
  const statements: string[] = []
  let open: string[] = []
  let depth = 0
  for (const line of lines) {
    if (line.trim() === '' || (depth === 0 && /^#!/.test(line))) continue
    open.push(line)
    const code = line.replace(/'[^']*'|"[^"]*"/g, '').replaceAll('=>', '')
    depth += (code.match(/[{([]/g)?.length ?? 0) - (code.match(/[})\]]/g)?.length ?? 0)
    if (depth === 0 && /[;}]$/.test(line)) {
      statements.push(open.join('\n'))
      open = []
    }
  }
  return statements
}
