/** `pawl dev`: a server and a worker for the tasks in this folder. Changed files restart the worker. */
import { resolve } from 'node:path'
import { type ResolvedSettings, storeOf } from '../../config/resolve-settings.ts'
import { command } from '../command.ts'
import { watchSources } from '../dev/watch-sources.ts'
import { openWorkers, type Reports } from '../dev/worker-processes.ts'
import { invalidCommand } from '../parse.ts'
import { serve } from '../serve.ts'
import { styled } from '../styled-line.ts'
import { findTaskModules, usualPlaces } from '../task-modules.ts'
import type { TerminalOutput } from '../terminal-output.ts'
import { untilAborted } from '../waiting.ts'
import { ofServer } from './up.ts'

export const dev = command({
  name: 'dev',
  summary: 'Run a server and a worker for the tasks in this folder, and restart the worker when a file changes.',
  details: `It loads the tasks in ${usualPlaces}, or what --tasks or the setting \`tasks\` names.
Without --database, the store is embedded in ./pawl-data, and keeps its data between runs.

When a source file changes, a new worker loads the tasks and takes over. Tasks that run at this moment are finished by the
previous worker, within --drain-seconds. Tasks that have not started are requeued and lose no attempt. If the files
cannot be loaded, for example because of a syntax error, the previous worker keeps running.`,
  settings: [
    'tasks',
    'queues',
    'concurrency',
    'buffer',
    'drainSeconds',
    ...ofServer.filter(name => !/^k(8s|ube)/.test(name)),
  ],
  async run({ resolved, output, json, stopSignal }) {
    const stop = stopSignal()
    const folder = process.cwd()
    const { tasks } = resolved.values
    if (findTaskModules(folder, tasks).length === 0) {
      throw invalidCommand(`pawl dev found no tasks in ${usualPlaces}. \`pawl init\` creates an example.`)
    }
    await serve(resolved, {}, async ({ engine, url, where }) => {
      if (json) output.printJsonLine({ url, store: where, pid: process.pid })
      else output.print(['Dashboard: ', styled('bold', `${url}/`), `  (Ctrl-C stops it. The data is in ${where}.)`])
      const { openWorkersKey } = await import('../runners.ts')
      const key = await openWorkersKey(engine, resolved)
      const setup = { tasks, server: url, key: key.secret, values: workerValues(resolved) }
      const workers = openWorkers(setup, json ? reportsAsJson(output) : reportsAsText(output))
      const reload = reloader(() => workers.load())
      const store = storeOf(resolved)
      const watching = watchSources(folder, {
        except: ['folder' in store ? store.folder : resolve(folder, 'pawl-data')],
        onChange(files) {
          if (files.some(isConfigFile)) output.printNotice('To apply changed settings, restart pawl dev.')
          if (!json)
            output.print(styled('dim', `Changed: ${files.slice(0, 3).join(', ')}${files.length > 3 ? ', …' : ''}`))
          workers.abandonLoad()
          void reload()
        },
        onError: error => output.printNotice(styled('yellow', `Cannot watch for changes: ${error.message}`)),
      })
      const stopped = untilAborted(stop)
      await Promise.race([reload(), stopped])
      await stopped
      watching.close()
      if (!json) output.print('Stopping. Running tasks are finished or requeued …')
      await workers.close()
      await key.revoke()
    })
    return { data: undefined }
  },
})

function reportsAsText(output: TerminalOutput): Reports {
  return {
    started(types, finishing) {
      const since = finishing ? '. The previous worker is finishing its tasks.' : ''
      output.print([finishing === undefined ? 'Worker: ' : 'Reloaded: ', styled('bold', types.join(', ')), since])
    },
    failed(lines, isKept) {
      const [first = '', ...rest] = lines
      output.printNotice([styled('red', 'Not loaded: '), first])
      for (const line of rest) output.printNotice(line)
      output.printNotice(isKept ? 'The previous worker keeps running.' : 'No worker runs until this is fixed.')
    },
    ended: how =>
      output.printNotice([styled('red', 'The worker ended'), ` (${how}). It starts again when a file changes.`]),
  }
}

function reportsAsJson(output: TerminalOutput): Reports {
  return {
    started: (types, finishing = false) => output.printJsonLine({ worker: 'started', types, finishing }),
    failed: (lines, isKept) => output.printJsonLine({ worker: isKept ? 'kept' : 'none', why: lines.join('\n') }),
    ended: how => output.printJsonLine({ worker: 'ended', how }),
  }
}

const isConfigFile = (file: string) => /^pawl\.config\.[a-z]+$/.test(file)

/** Runs one reload at a time. Changes during a reload cause one more. */
function reloader(load: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  let isDue = false
  const runAll = async () => {
    try {
      while (isDue) {
        isDue = false
        await load()
      }
    } finally {
      running = undefined
    }
  }
  return () => {
    isDue = true
    running ??= runAll()
    return running
  }
}

function workerValues({ values }: ResolvedSettings) {
  const { queues, concurrency, buffer, drainSeconds, log, logLevel } = values
  return {
    ...(queues && { queues }),
    concurrency,
    ...(buffer !== undefined && { buffer }),
    drainSeconds,
    ...(log && { log }),
    logLevel,
  }
}
