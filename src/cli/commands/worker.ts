import { resolve } from 'node:path'
import { connect } from '../../client/client.ts'
import { type ResolvedSettings, serverOf, storeOf } from '../../config/resolve-settings.ts'
import { storeSettings } from '../../config/settings.ts'
import { commandType } from '../../kernel/datum.ts'
import { withoutUndefined } from '../../kernel/without-undefined.ts'
import type { SyncPort } from '../../protocol/tasks/sync.ts'
import type { Task } from '../../worker/index.ts'
import { command } from '../command.ts'
import { fileLimitsOf } from '../component-options.ts'
import { opensStore } from '../connect-api.ts'
import { counted } from '../counted.ts'
import { logOf } from '../log.ts'
import { invalidCommand } from '../parse.ts'
import { hideOwnSecrets, readKey } from '../secrets.ts'
import { findTaskModules, loadTasks, usualPlaces } from '../task-modules.ts'
import { untilAborted } from '../waiting.ts'

export const worker = command({
  name: 'worker',
  summary: 'Run a worker with the handlers of a module, or for command tasks.',
  details: `The module is TypeScript or JavaScript. The worker runs tasks of all the types that it exports. Without MODULE, it loads
${usualPlaces}, or what the setting \`tasks\` names.
On SIGTERM, running handlers may finish, and other claimed tasks are requeued. The worker connects to a server or, with
--database, directly to PostgreSQL.

With --commands, the worker also runs the programs of command tasks as its own user: anyone who can queue tasks can then
run any program on this machine. The API key and the database URL are removed from the environment and the arguments of
the process, where those programs could read them.`,
  parameters: { 'module?': 'the file with the handlers' },
  flags: {
    name: {
      kind: 'text',
      value: 'NAME',
      summary: 'the name of the worker; default: NODE_NAME/POD_NAME if both are set, otherwise host and process id',
    },
    'with-input': {
      kind: 'switch',
      summary: 'stop within 20 s after standard input closes; for programs that start workers',
    },
    commands: { kind: 'switch', summary: 'also run command tasks; MODULE is then optional' },
    folder: {
      kind: 'text',
      value: 'FOLDER',
      summary:
        'with --commands: the folder for inputs and outputs while a command runs; default: in the temp directory',
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
    'tasks',
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
  async run({ args, flags, resolved, output, json, stopSignal }) {
    const { concurrency, buffer, drainSeconds, queues } = resolved.values
    const usual = flags.commands === true ? [] : findTaskModules('.', resolved.values.tasks)
    const files = args.module === undefined ? usual : [args.module]
    checkArguments(files, flags, queues)
    const key = (await readKey(flags)) ?? resolved.values.key
    if (flags.commands === true) protectSecrets(resolved)
    await using commands = flags.commands === true ? await openCommands(flags, resolved) : undefined
    const ownTasks = files.length === 0 ? [] : await loadTasks(files)
    const tasks = [...ownTasks, ...(commands?.tasks ?? [])]
    const log = logOf(resolved.values)
    await using port = await open(resolved, key, log)
    const orphaned = flags['with-input'] === true ? whenInputCloses() : new AbortController().signal
    const stop = AbortSignal.any([stopSignal(), orphaned])
    const { startWorker } = await import('../../worker/index.ts')
    const running = startWorker(port.engine, tasks, {
      concurrency,
      drainSeconds,
      log,
      ...withoutUndefined({ buffer, queues, name: flags.name }),
    })
    const claimedQueues = queues ?? tasks.map(({ type }) => type)
    if (json) output.printJsonLine({ worker: running.name, queues: claimedQueues, concurrency, pid: process.pid })
    else
      output.print(
        `Worker ${running.name} runs up to ${counted(concurrency, 'task')} at once from ${claimedQueues.join(', ')}, ${port.where}.`,
      )
    await untilAborted(stop)
    if (!json) output.print(`Stopping. Tasks still running: ${running.inHand()} …`)
    const stopSoon = () => running.stop(Math.min(drainSeconds, orphanSeconds))
    if (orphaned.aborted) await stopSoon()
    orphaned.addEventListener('abort', () => void stopSoon(), { once: true })
    await running.stop()
    return { data: undefined }
  },
})

/** A shorter drain, because nothing waits for a worker whose parent process has ended. */
const orphanSeconds = 20

/** The parent process holds the other end of standard input. It closes however the parent dies. */
function whenInputCloses(): AbortSignal {
  const over = new AbortController()
  for (const event of ['end', 'close', 'error']) process.stdin.once(event, () => over.abort())
  process.stdin.resume()
  return over.signal
}

/** Commands run as the same user. Throws if they could read the key of this worker. */
function protectSecrets(resolved: ResolvedSettings): void {
  // By default, this signal makes Node open a debugger, through which a command could read everything.
  process.on('SIGUSR1', () => {})
  if (hideOwnSecrets(resolved)) return
  const why = 'Commands could read the API key or the database URL in the environment or the arguments of this process.'
  throw invalidCommand(`${why} Pass the key with --key-file, and set the database in pawl.config.json.`)
}

interface CommandFlags {
  readonly commands?: true | undefined
  readonly folder?: string | undefined
  readonly secrets?: string | undefined
}

function checkArguments(files: readonly string[], flags: CommandFlags, queues: readonly string[] | undefined): void {
  if (flags.commands === true) return
  const unused = (['folder', 'secrets'] as const).find(name => flags[name] !== undefined)
  if (unused !== undefined) throw invalidCommand(`--${unused} requires --commands.`)
  if (files.length === 0) {
    const why = `pawl worker found no tasks in ${usualPlaces}.`
    throw invalidCommand(`${why} Name the module with the handlers, or use --commands.`)
  }
  if (queues?.includes(commandType) === true) {
    throw invalidCommand(
      `Tasks in the queue "${commandType}" run programs on this machine. To run them, use --commands.`,
    )
  }
}

/** Opens the folder and the file stores now, so that errors show when the worker starts and not with its first task. */
async function openCommands(
  { folder, secrets }: CommandFlags,
  resolved: ResolvedSettings,
): Promise<AsyncDisposable & { tasks: Task[] }> {
  const { defaultFolder, openFolder } = await import('../../commands/attempt-folder.ts')
  const { commandTask } = await import('../../commands/command-task.ts')
  const { openFiles } = await import('../../files/files.ts')
  const files = openFiles(withoutUndefined(fileLimitsOf(resolved)))
  const path = resolve(folder ?? defaultFolder())
  await openFolder(path)
  const task = commandTask({ files, folder: path, ...(secrets !== undefined && { secretsFolder: resolve(secrets) }) })
  return { tasks: [task], [Symbol.asyncDispose]: () => files.close() }
}

interface Port extends AsyncDisposable {
  readonly engine: SyncPort
  readonly where: string
}

async function open(resolved: ResolvedSettings, key: string | undefined, log: ReturnType<typeof logOf>): Promise<Port> {
  if (!opensStore(resolved)) {
    const server = serverOf(resolved)
    const client = connect({ server, ...withoutUndefined({ key }) })
    return { engine: client, where: `through ${server}`, [Symbol.asyncDispose]: () => client.close() }
  }
  const { openEngine } = await import('../../engine/engine.ts')
  const { startBabysitter } = await import('../../babysitter/babysitter.ts')
  const { maxPayloadBytes } = resolved.values
  const engine = await openEngine({ ...storeOf(resolved), maxPayloadBytes, log })
  // There may be no server that runs the background chores.
  const babysitter = startBabysitter(engine)
  const close = async () => {
    await babysitter.stop()
    await engine.close()
  }
  return { engine, where: 'directly from the store', [Symbol.asyncDispose]: close }
}
