/**
 * The worker of `pawl dev`, in a process of its own, so that changed files are loaded anew. It loads the tasks at once,
 * but claims none before the parent says so: by then the worker before it has stopped claiming.
 */
import { join } from 'node:path'
import { connect } from '../../client/client.ts'
import type { PawlConfig } from '../../config/config.ts'
import { withoutUndefined } from '../../kernel/without-undefined.ts'
import { startWorker, type Worker } from '../../worker/index.ts'
import { errorMessage } from '../error-message.ts'
import { logOf } from '../log.ts'
import { render } from '../styled-line.ts'
import { findTaskModules, loadTasks } from '../task-modules.ts'

/** The settings of the worker; sent once, before everything else. */
export interface WorkerSetup {
  /** The setting `tasks`. */
  readonly tasks: readonly string[] | undefined
  readonly server: string
  readonly key: string | undefined
  readonly values: Pick<PawlConfig, 'queues' | 'concurrency' | 'buffer' | 'drainSeconds' | 'log' | 'logLevel'>
}

export type ToWorker = { readonly setup: WorkerSetup } | 'run' | 'stop'

export type FromWorker =
  | { readonly loaded: readonly string[] }
  /** Lines for people: why the tasks could not be loaded. */
  | { readonly failed: readonly string[] }
  /** It claims no more. True: it still finishes tasks. */
  | { readonly stopping: boolean }

/** A shorter drain, because nothing waits for a worker whose parent process has ended. */
const orphanSeconds = 20

// The terminal sends Ctrl-C, and its own end, to this process too. The parent decides.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
// After the end of the terminal, or of another reader, what handlers print goes nowhere.
for (const output of [process.stdout, process.stderr]) output.on('error', () => {})

let run: (() => void) | undefined
let worker: Worker | undefined

process.on('message', (message: ToWorker) => {
  if (message === 'run') run?.()
  else if (message === 'stop') void stop()
  else void load(message.setup)
})
process.on('disconnect', () => void stop(orphanSeconds))

async function load({ tasks: places, server, key, values }: WorkerSetup): Promise<void> {
  try {
    const tasks = await loadTasks(findTaskModules('.', places))
    run = () => {
      const client = connect({ server, ...withoutUndefined({ key }) })
      const { queues, concurrency, buffer, drainSeconds } = values
      const options = withoutUndefined({ queues, concurrency, buffer, drainSeconds })
      worker = startWorker(client, tasks, { ...options, log: logOf(values) })
    }
    tell({ loaded: tasks.map(({ type }) => type) })
  } catch (error) {
    const view = { colour: false, width: Number.POSITIVE_INFINITY }
    const lines = errorMessage(error).map(line => render(line, view).replace(/^pawl: /, ''))
    tell({ failed: lines.map(line => line.replaceAll(join(process.cwd(), '/'), '')) })
    process.disconnect()
  }
}

async function stop(withinSeconds?: number): Promise<void> {
  const stopped = worker?.stop(withinSeconds)
  tell({ stopping: (worker?.inHand() ?? 0) > 0 })
  await stopped
  // A handler that never ends would keep the process alive.
  process.exit(0)
}

function tell(message: FromWorker): void {
  if (process.connected) process.send!(message)
}
