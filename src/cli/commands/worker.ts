import { resolve } from 'node:path'
import { connect } from '../../client/client.ts'
import { loadModule } from '../../config/load-module.ts'
import { type Settled, serverOf, storeOf } from '../../config/resolve.ts'
import { storeSettings } from '../../config/settings.ts'
import { commandType } from '../../kernel/datum.ts'
import { Problem } from '../../kernel/problem.ts'
import type { SyncPort } from '../../protocol/tasks/sync.ts'
import { isObject } from '../../schema/check.ts'
import type { Task } from '../../worker/index.ts'
import { command } from '../command.ts'
import { fileLimitsOf } from '../file-limits.ts'
import { logOf } from '../log.ts'
import { hideOwnSecrets } from '../own-secrets.ts'
import { refused } from '../parse.ts'
import { namesStore } from '../reach.ts'
import { readKey } from '../read-key.ts'

export const worker = command({
  name: 'worker',
  summary: 'Run a worker: tasks with the handlers of a module, or command tasks.',
  more: `The module is TypeScript or JavaScript; every task that it exports is worked on. SIGTERM drains: running handlers
may finish, the rest is given back. It speaks to a server, or to a PostgreSQL server directly with --database.

With --commands it also runs the programs of command tasks, as the user that it runs as: whoever may queue tasks may
then run anything here. Without it, it never does. The key and the address of a database are removed from the
environment and the arguments of the process, where those programs could read them.`,
  takes: { 'module?': 'the file with the handlers' },
  flags: {
    name: {
      kind: 'text',
      value: 'NAME',
      summary: 'the name of the worker; default: NODE_NAME/POD_NAME if both are set, otherwise host and process id',
    },
    'with-input': {
      kind: 'switch',
      summary: 'stop within 20 s when standard input closes; for programs that start workers',
    },
    commands: { kind: 'switch', summary: 'also run command tasks; MODULE is then optional' },
    folder: {
      kind: 'text',
      value: 'FOLDER',
      summary:
        'with --commands: where inputs and outputs are kept while a command runs; default: in the temp directory',
    },
    'key-file': {
      kind: 'text',
      value: 'FILE',
      summary: 'read the API key from this file; -: from the first line of standard input',
    },
    'delete-key-file': {
      kind: 'switch',
      summary: 'delete the file of --key-file after reading it, so that no command can read it',
    },
    secrets: {
      kind: 'text',
      value: 'FOLDER',
      summary: 'with --commands: a folder with secrets as SECRET/KEY; others are read from the environment',
    },
  },
  settings: [
    'queues',
    'concurrency',
    'buffer',
    'drainSeconds',
    'server',
    'key',
    'database',
    'data',
    'schema',
    ...storeSettings,
    'maxPayloadBytes',
    'fileRoots',
    's3Buckets',
    'log',
    'logLevel',
  ],
  async run({ args, flags, settled, screen, json, untilTold }) {
    const { concurrency, buffer, drainSeconds, queues } = settled.values
    refuseWithout(args.module, flags, queues)
    const key = (await readKey(flags)) ?? settled.values.key
    if (flags.commands === true) keepFromCommands(settled)
    await using commands = flags.commands === true ? await openCommands(flags, settled) : undefined
    const own = args.module === undefined ? [] : tasksIn(args.module, await loadModule(resolve(args.module)))
    const tasks = [...own, ...(commands?.tasks ?? [])]
    const log = logOf(settled.values)
    await using port = await open(settled, key, log)
    const orphaned = flags['with-input'] === true ? inputEnds() : new AbortController().signal
    const told = AbortSignal.any([untilTold(), orphaned])
    const { startWorker } = await import('../../worker/index.ts')
    const works = startWorker(port.engine, tasks, {
      concurrency,
      drainSeconds,
      log,
      ...(buffer !== undefined && { buffer }),
      ...(queues !== undefined && { queues }),
      ...(flags.name !== undefined && { name: flags.name }),
    })
    const on = queues ?? tasks.map(({ type }) => type)
    if (json) screen.jsonLine({ worker: works.name, queues: on, concurrency, pid: process.pid })
    else
      screen.say(
        `Worker ${works.name} claims from ${on.join(', ')}, at most ${concurrency} tasks at once, ${port.where}.`,
      )
    await new Promise<void>(end => (told.aborted ? end() : told.addEventListener('abort', () => end(), { once: true })))
    if (!json) screen.say(`Stopping. Tasks that are still running: ${works.inHand()} …`)
    const hurry = () => works.stop(Math.min(drainSeconds, orphanSeconds))
    if (orphaned.aborted) await hurry()
    orphaned.addEventListener('abort', () => void hurry(), { once: true })
    await works.stop()
    return { data: undefined }
  },
})

/** Nobody waits any longer for one whose starter is gone, or is about to go. */
const orphanSeconds = 20

/** Whoever started it holds the other end: if that dies, however it does, this ends too. */
function inputEnds(): AbortSignal {
  const over = new AbortController()
  for (const event of ['end', 'close', 'error']) process.stdin.once(event, () => over.abort())
  process.stdin.resume()
  return over.signal
}

/** Commands run as the same user: refuses to run any that could read the key of this worker. */
function keepFromCommands(settled: Settled): void {
  // Node opens a debugger when it gets this signal, and through it a command could read everything.
  process.on('SIGUSR1', () => {})
  if (hideOwnSecrets(settled)) return
  const why = 'Commands could read the key or the database URL in the environment or the arguments of this process.'
  throw refused(`${why} Give the key with --key-file, and name the database in pawl.config.json.`)
}

interface CommandFlags {
  readonly commands?: true | undefined
  readonly folder?: string | undefined
  readonly secrets?: string | undefined
}

function refuseWithout(module: string | undefined, flags: CommandFlags, queues: readonly string[] | undefined): void {
  if (flags.commands === true) return
  const idle = (['folder', 'secrets'] as const).find(name => flags[name] !== undefined)
  if (idle !== undefined) throw refused(`--${idle} is for command tasks: say --commands, too.`)
  if (module === undefined) throw refused('pawl worker wants MODULE, the file with the handlers; or --commands.')
  if (queues?.includes(commandType) === true) {
    throw refused(
      `Tasks in the queue "${commandType}" run programs on this machine: a worker takes them only with --commands.`,
    )
  }
}

/** What only shows when the first task comes would be found too late. */
async function openCommands(
  { folder, secrets }: CommandFlags,
  settled: Settled,
): Promise<AsyncDisposable & { tasks: Task[] }> {
  const { defaultFolder, openFolder } = await import('../../commands/attempt-folder.ts')
  const { commandTask } = await import('../../commands/command-task.ts')
  const { openFiles } = await import('../../files/files.ts')
  const { roots, buckets } = fileLimitsOf(settled)
  const files = openFiles({ ...(roots !== undefined && { roots }), ...(buckets !== undefined && { buckets }) })
  const place = resolve(folder ?? defaultFolder())
  await openFolder(place)
  const task = commandTask({ files, folder: place, ...(secrets !== undefined && { secretsFolder: resolve(secrets) }) })
  return { tasks: [task], [Symbol.asyncDispose]: () => files.close() }
}

interface Port extends AsyncDisposable {
  readonly engine: SyncPort
  readonly where: string
}

async function open(settled: Settled, key: string | undefined, log: ReturnType<typeof logOf>): Promise<Port> {
  if (!namesStore(settled)) {
    const server = serverOf(settled)
    const client = connect({ server, ...(key !== undefined && { key }) })
    return { engine: client, where: `through ${server}`, [Symbol.asyncDispose]: () => client.close() }
  }
  const { openEngine } = await import('../../engine/engine.ts')
  const { startBabysitter } = await import('../../babysitter/babysitter.ts')
  const { maxPayloadBytes } = settled.values
  const engine = await openEngine({ ...storeOf(settled), maxPayloadBytes, log })
  // There may be no server that looks after the store.
  const babysitter = startBabysitter(engine)
  const close = async () => {
    await babysitter.stop()
    await engine.close()
  }
  return { engine, where: 'straight in the store', [Symbol.asyncDispose]: close }
}

function tasksIn(file: string, module: Readonly<Record<string, unknown>>): Task[] {
  const tasks = [...new Set(Object.values(module).flatMap(value => (Array.isArray(value) ? value : [value])))].filter(
    isTask,
  )
  if (tasks.length === 0) {
    throw new Problem('FILE_INVALID', { file, why: 'it exports no task: `export const greet = defineTask({ … })`' })
  }
  const types = tasks.map(({ type }) => type)
  if (types.includes(commandType)) {
    const why = `"${commandType}" is the type of command tasks, which only --commands takes on: give yours another`
    throw new Problem('FILE_INVALID', { file, why })
  }
  const twice = types.find((type, index) => types.indexOf(type) !== index)
  if (twice !== undefined) throw new Problem('FILE_INVALID', { file, why: `two of its tasks have the type "${twice}"` })
  return tasks
}

/** By its shape: a task may have been defined by another copy of the package. */
function isTask(value: unknown): value is Task {
  return isObject(value) && typeof value.type === 'string' && typeof value.run === 'function' && isObject(value.options)
}
