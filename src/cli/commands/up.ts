/** Runs everything in one process: the store, the HTTP server, the babysitter and, for the demo, a worker. */
import { kubernetesSettings } from '../../config/kubernetes-settings.ts'
import { dialectsOf } from '../../config/resolve-settings.ts'
import { flagSettings, type SettingName } from '../../config/settings.ts'
import type { Engine } from '../../engine/engine.ts'
import { Problem } from '../../kernel/problem.ts'
import { ownRoot } from '../../server/options.ts'
import { type CommandContext, command } from '../command.ts'
import { errorMessage } from '../error-message.ts'
import { logOf } from '../log.ts'
import { serve } from '../serve.ts'
import { styledState } from '../states.ts'
import { styled } from '../styled-line.ts'
import type { TerminalOutput } from '../terminal-output.ts'
import { untilAborted } from '../waiting.ts'
import { demoTasks, explainDemo, showDemo } from './demo.ts'

type CommandOutput = Pick<CommandContext, 'output' | 'json'>

const ofWorkers: readonly SettingName[] = ['server', 'key', 'tasks', 'queues', 'concurrency', 'buffer', 'drainSeconds']
export const ofServer = flagSettings.filter(name => !ofWorkers.includes(name))
const ofKubernetes = ofServer.filter(name => Object.hasOwn(kubernetesSettings, name))

export const up = command({
  name: 'up',
  summary: 'Start Pawl: the store, the HTTP server and the background chores.',
  details: `Without --database, the store is embedded in a folder. On PostgreSQL, any number of servers may share a store.
SIGINT and SIGTERM stop it gracefully. With --json, the first line contains the URL of the server.`,
  flags: {
    demo: { kind: 'switch', summary: 'run a demo job first, and show its progress' },
    commands: { kind: 'switch', summary: 'run command tasks in worker processes on this machine' },
    workers: {
      kind: 'number',
      value: 'N',
      summary: 'with --commands: maximum number of worker processes; default: 16',
    },
  },
  settings: [...ofServer.filter(name => !ofKubernetes.includes(name)), ...ofKubernetes],
  async run({ flags, resolved, output, json, stopSignal }) {
    const stop = stopSignal()
    const { rootDialect } = dialectsOf(resolved)
    await serve(resolved, flags, async ({ engine, url, where }) => {
      const { startWorker } = await import('../../worker/index.ts')
      const log = logOf(resolved.values)
      await using _worker = flags.demo ? startWorker(engine, demoTasks, { name: 'demo', log }) : undefined
      if (json) output.printJsonLine({ url, store: where, pid: process.pid })
      else output.print(['Pawl is running at ', styled('bold', url), `. Its data is in ${where}.`])
      if (!json && rootDialect) output.print(`The ${rootDialect} dialect is at ${url.slice(0, -ownRoot.length)}/.`)
      if (flags.demo) await demonstrate(engine, url, { output, json }, stop).catch(printProblem(output))
      if (!json && !stop.aborted) output.print('Press Ctrl-C to stop.')
      await untilAborted(stop)
      if (!json) output.print('Stopping. Running work is finished or requeued …')
    })
    return { data: undefined }
  },
})

/** Runs the demo job and shows its progress. With --json, prints one line when it starts and one when it ends. */
async function demonstrate(
  engine: Engine,
  url: string,
  { output, json }: CommandOutput,
  stop: AbortSignal,
): Promise<void> {
  const job = await showDemo(engine, { output, signal: stop, silent: json }, job => {
    if (json) output.printJsonLine({ demo: job.id, state: job.state, url: `${url}/v1/jobs/${job.id}` })
    else output.print(['Demo job: ', styled('cyan', `${url}/#/jobs/${job.id}`)])
  })
  if (stop.aborted) return
  if (json) return output.printJsonLine({ demo: job.id, state: job.state })
  for (const line of await explainDemo(engine, job)) output.print(line)
  output.print([
    'The demo job ',
    styledState('job', job.state),
    `. To see it again, run in another terminal: npx pawl job describe ${job.id.slice(-8)}`,
  ])
}

/** For a problem of the demo job, which somebody may have cancelled or deleted. The server keeps running. */
function printProblem(output: TerminalOutput) {
  return (error: unknown): void => {
    if (!(error instanceof Problem)) throw error
    output.keepDrawing()
    for (const line of errorMessage(error)) output.printNotice(line)
  }
}
