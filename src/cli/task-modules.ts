/** The modules with a project's tasks: where they are, and the tasks that they export. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { extname, join, relative, resolve } from 'node:path'
import { loadModule } from '../config/load-module.ts'
import { commandType } from '../kernel/datum.ts'
import { Problem } from '../kernel/problem.ts'
import { isObject } from '../schema/check.ts'
import type { Task } from '../worker/index.ts'

const endings = ['.ts', '.mts', '.cts', '.tsx', '.js', '.mjs', '.cjs', '.jsx']

/** Without the setting `tasks`, the first of these that exists. */
const usual = [
  'tasks',
  'src/tasks',
  ...['tasks', 'src/tasks', 'handlers'].flatMap(name => [`${name}.ts`, `${name}.js`]),
]

export const usualPlaces = 'tasks/, src/tasks/, tasks.ts, src/tasks.ts or handlers.ts'

export const isSource = (file: string) => endings.includes(extname(file))

/** The modules that the setting `tasks` names, or else those in the usual places. A folder means all modules in it. */
export function findTaskModules(folder: string, named: readonly string[] | undefined): string[] {
  const isThere = (place: string) =>
    statSync(join(folder, place), { throwIfNoEntry: false })?.isDirectory() === !isSource(place)
  const found = named ?? usual.filter(isThere).slice(0, 1)
  return [...new Set(found.flatMap(place => modulesAt(resolve(folder, place))))]
}

function modulesAt(path: string): string[] {
  if (!existsSync(path)) throw new Problem('FILE_INVALID', { file: path, why: 'file not found' })
  if (!statSync(path).isDirectory()) return [path]
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .filter(name => isSource(name) && !isTest(name) && !/(^|[/\\])node_modules[/\\]/.test(name))
    .sort()
    .map(name => join(path, name))
}

/** Tests often stand beside the tasks, and declarations export nothing that runs. */
const isTest = (name: string) => /\.(test|spec|d)\.[cm]?[jt]sx?$|(^|[/\\])(__tests__|tests?)[/\\]/.test(name)

/** Loads the modules and returns the tasks that they export. Throws if no module exports one. */
export async function loadTasks(files: readonly string[]): Promise<Task[]> {
  if (files.length === 0) throw new Problem('FILE_INVALID', { file: usualPlaces, why: 'no file with tasks was found' })
  const found = new Map<Task, string>()
  for (const file of files) {
    const module = await loadModule(resolve(file))
    for (const task of exportedTasks(module)) if (!found.has(task)) found.set(task, file)
  }
  const shown = files.map(file => (relative('.', file).startsWith('..') ? file : relative('.', file))).join(', ')
  if (found.size === 0) {
    throw new Problem('FILE_INVALID', {
      file: shown,
      why: 'it must export at least one task, for example `export const greet = defineTask({ … })`',
    })
  }
  checkTypes([...found])
  return [...found.keys()]
}

function checkTypes(found: readonly (readonly [task: Task, file: string])[]): void {
  const files = new Map<string, string>()
  for (const [{ type }, file] of found) {
    if (type === commandType) {
      throw new Problem('FILE_INVALID', { file, why: `the task type "${commandType}" is reserved for command tasks` })
    }
    const other = files.get(type)
    if (other !== undefined) {
      const why =
        other === file ? `two of its tasks have the type "${type}"` : `a task in ${other} has the type "${type}" too`
      throw new Problem('FILE_INVALID', { file, why })
    }
    files.set(type, file)
  }
}

function exportedTasks(module: Readonly<Record<string, unknown>>): Task[] {
  return Object.values(module)
    .flatMap(value => (Array.isArray(value) ? value : [value]))
    .filter(isTask)
}

/** Checks the shape and not the class: a task may have been defined with another copy of the package. */
function isTask(value: unknown): value is Task {
  return isObject(value) && typeof value.type === 'string' && typeof value.run === 'function' && isObject(value.options)
}
