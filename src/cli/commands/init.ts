/** `pawl init`: a new project with a task and its test. It never changes a file that exists. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { Problem } from '../../kernel/problem.ts'
import { command } from '../command.ts'
import { exitCodes } from '../error-message.ts'
import { exampleFiles, otherFiles, type ProjectFile, packageFile, testCommand } from '../init/project-files.ts'
import { type Line, styled } from '../styled-line.ts'
import { findTaskModules } from '../task-modules.ts'
import { ownFolder, readVersion } from '../version.ts'

export const init = command({
  name: 'init',
  summary: 'Create a project with a task and a test, or add them to the project in this folder.',
  details: `It creates package.json, a task in tasks/ or src/tasks/, a test, tsconfig.json, .gitignore and README.md. Files that exist
are kept as they are. In a new project it also runs npm install, unless Pawl is installed there or in a folder above.`,
  parameters: { 'folder?': 'the folder of the project, created if necessary; default: this folder' },
  flags: { 'no-install': { kind: 'switch', summary: 'do not run npm install' } },
  async run({ args, flags, output, json, env }) {
    const folder = resolve(args.folder ?? '.')
    checkFolders(folder, '.')
    const project = projectIn(folder)
    const isNew = !existsSync(join(folder, 'package.json'))
    const hasTasks = existsSync(folder) && findTaskModules(folder, undefined).length > 0
    const files = [packageFile(project), ...(hasTasks ? [] : exampleFiles(project)), ...otherFiles(project)]
    for (const { path } of files) checkFolders(folder, dirname(path))
    const made = files.map(file => ({ path: file.path, created: create(folder, file) }))
    const shown = relative('.', folder)
    if (!json) for (const { path, created } of made) output.print(fileLine(join(shown, path), created))
    const wasInstalled = isInstalled(folder)
    const mayInstall = isNew && !wasInstalled && flags['no-install'] !== true
    if (mayInstall && !json) output.print(styled('dim', 'Installing packages …'))
    const installed = wasInstalled || (mayInstall && (await install(folder, env, json)))
    const steps = nextSteps({ shown, isNew, installed, tests: project.tests, hasTasks })
    return {
      data: { folder, files: made, installed },
      show: () => [
        ...(mayInstall && !installed ? ['', styled('red', 'The packages could not be installed.')] : []),
        '',
        'Next:',
        ...steps,
      ],
      code: mayInstall && !installed ? exitCodes.bad : exitCodes.good,
    }
  },
})

function projectIn(folder: string) {
  const has = (name: string) => statSync(join(folder, name), { throwIfNoEntry: false })?.isDirectory() === true
  return {
    // The rules of npm for names.
    name:
      basename(folder)
        .toLowerCase()
        .replace(/[^a-z0-9._-]+/g, '-')
        .replace(/^[._-]+/, '') || 'my-app',
    tasks: !has('tasks') && has('src') ? 'src/tasks' : 'tasks',
    tests: has('test') ? 'test' : 'tests',
    pawl: installSource(),
  }
}

/** Throws if the path, or a part of it, is a file. So a project that cannot be created is not begun. */
function checkFolders(folder: string, path: string): void {
  if (path !== '.') checkFolders(folder, dirname(path))
  const file = join(folder, path)
  if (existsSync(file) && !statSync(file).isDirectory()) {
    throw new Problem('FILE_INVALID', { file, why: 'it is a file, not a folder' })
  }
}

/** Returns false and changes nothing if the file exists. */
function create(folder: string, { path, content }: ProjectFile): boolean {
  const file = join(folder, path)
  try {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content, { flag: 'wx' })
    return true
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' && existsSync(file)) return false
    throw new Problem('FILE_INVALID', { file, why: message }, error)
  }
}

const fileLine = (path: string, created: boolean): Line =>
  created ? [styled('green', 'Created'), ` ${path}`] : styled('dim', `Kept    ${path}, which exists`)

interface Steps {
  readonly shown: string
  readonly isNew: boolean
  readonly installed: boolean
  readonly tests: string
  readonly hasTasks: boolean
}

function nextSteps({ shown, isNew, installed, tests, hasTasks }: Steps): Line[] {
  const rows: (readonly [string, string])[] = [
    ...(shown === '' ? [] : [[`cd ${asWord(shown)}`, ''] as const]),
    ...(installed
      ? []
      : [[isNew ? 'npm install' : `npm install ${installSource()} && npm install --save-dev jiti`, ''] as const]),
    ['npx pawl dev', 'runs a server and a worker, and shows the address of the dashboard'],
    ...(hasTasks
      ? []
      : [
          [`npx pawl task add greet '{"name": "Ada"}' --wait`, 'queues a task, in a second terminal'] as const,
          [isNew ? 'npm test' : testCommand(tests), 'runs the test'] as const,
        ]),
  ]
  const width = Math.max(...rows.map(([typed]) => typed.length))
  return rows.map(([typed, about]) => [`  ${typed.padEnd(width)}  `, styled('dim', about)])
}

/** A path as one word of a shell. Where they suffice, double quotes, which every shell knows. */
function asWord(path: string): string {
  if (/^[\w.:@%+=,/-]+$/.test(path)) return path
  return /["$`\\!]/.test(path) ? `'${path.replaceAll("'", `'\\''`)}'` : `"${path}"`
}

/** Whether a program in this folder can import Pawl. */
function isInstalled(folder: string): boolean {
  if (existsSync(join(folder, 'node_modules/pawl/package.json'))) return true
  return dirname(folder) !== folder && isInstalled(dirname(folder))
}

/** Where this copy of Pawl was installed from: what the project around it says, or the folder of a clone. */
function installSource(): string {
  const own = ownFolder()
  const parent = dirname(own)
  if (basename(parent) !== 'node_modules') return `file:${own}`
  const project = dirname(parent)
  const source = dependencyOf(join(project, 'package.json'))
  if (source === undefined) return `^${readVersion()}`
  return source.startsWith('file:') ? `file:${resolve(project, source.slice('file:'.length))}` : source
}

function dependencyOf(file: string): string | undefined {
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) as { dependencies?: Record<string, string> }).dependencies?.pawl
  } catch {
    return undefined
  }
}

/** With the package manager that started this process, otherwise with npm. */
async function install(folder: string, env: Readonly<Record<string, string | undefined>>, json: boolean) {
  const agent = env.npm_config_user_agent?.split('/')[0] ?? 'npm'
  const manager = ['npm', 'pnpm', 'yarn', 'bun'].includes(agent) ? agent : 'npm'
  const words =
    manager === 'npm' ? ['install', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'] : ['install']
  const child = spawn(manager, words, {
    cwd: folder,
    env: { ...env },
    stdio: ['ignore', json ? 'ignore' : 'inherit', 'inherit'],
    shell: process.platform === 'win32',
  })
  const [code] = await once(child, 'close').catch(() => [1])
  return code === 0
}
