/** Runs everything in one process: the store, the HTTP server, the babysitter and, for the demo, a worker. */
import { kubernetesSettings } from '../../config/kubernetes-settings.ts'
import { dialectsOf, type ResolvedSettings, serverBoundsOf, storeOf } from '../../config/resolve-settings.ts'
import { flagSettings, type SettingName } from '../../config/settings.ts'
import type { Engine } from '../../engine/engine.ts'
import { Problem } from '../../kernel/problem.ts'
import { withoutUndefined } from '../../kernel/without-undefined.ts'
import { isLoopback } from '../../server/authenticate.ts'
import { ownRoot } from '../../server/options.ts'
import { type CommandContext, command } from '../command.ts'
import { fileLimitsOf, podRulesOf } from '../component-options.ts'
import { errorMessage } from '../error-message.ts'
import { logOf } from '../log.ts'
import { pipelinesOf } from '../read-spec.ts'
import { styledState } from '../states.ts'
import { styled } from '../styled-line.ts'
import type { TerminalOutput } from '../terminal-output.ts'
import { untilAborted } from '../waiting.ts'
import { demoTasks, explainDemo, showDemo } from './demo.ts'

type CommandOutput = Pick<CommandContext, 'output' | 'json'>

const ofWorkers: readonly SettingName[] = ['server', 'key', 'queues', 'concurrency', 'buffer', 'drainSeconds']
const ofServer = flagSettings.filter(name => !ofWorkers.includes(name))
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
    const { host, port, keysOnly, maxPayloadBytes, taskTypes = {} } = resolved.values
    // A key must not give access to all files of this machine.
    const limits = fileLimitsOf(resolved, keysOnly === true || !isLoopback(host) ? [] : undefined)
    const dialects = dialectsOf(resolved)
    const store = storeOf(resolved)
    const log = logOf(resolved.values)
    const { allChores, openRunners, openEngine, startBabysitter, startServer, startWorker } = await loadModules()
    await using engine = await openEngine({
      ...store,
      maxPayloadBytes,
      ...(await pipelinesOf(resolved)),
      log,
      // A server that starts no pods leaves this check to the servers that do.
      ...(resolved.values.kubernetes === true && { podRules: podRulesOf(resolved) }),
      ...withoutUndefined({ fileRoots: limits.roots, s3Buckets: limits.buckets }),
    })
    for (const [type, options] of Object.entries(taskTypes)) await engine.putTaskType(type, options)
    const options = { host, port, keysOnly, ...serverBoundsOf(resolved), log, ...dialects }
    const server = await startServer(engine, options).catch(addOrigin(resolved))
    await using _server = { [Symbol.asyncDispose]: () => server.close() }
    await using runners = await openRunners(engine, resolved, server.url, { ...flags, limits })
    await using _babysitter = startBabysitter(engine, [...allChores(engine.context), ...runners.chores])
    await using _worker = flags.demo ? startWorker(engine, demoTasks, { name: 'demo', log }) : undefined
    const where = 'folder' in store ? store.folder : 'PostgreSQL'
    if (json) output.printJsonLine({ url: server.url, store: where, pid: process.pid })
    else output.print(['Pawl is running at ', styled('bold', server.url), `. Its data is in ${where}.`])
    if (!json && dialects.rootDialect)
      output.print(`The ${dialects.rootDialect} dialect is at ${server.url.slice(0, -ownRoot.length)}/.`)
    if (flags.demo) await demonstrate(engine, server.url, { output, json }, stop).catch(printProblem(output))
    if (!json && !stop.aborted) output.print('Press Ctrl-C to stop.')
    await untilAborted(stop)
    if (!json) output.print('Stopping. Running work is finished or requeued …')
    return { data: undefined }
  },
})

/** Imported only here, so that other commands start faster. */
async function loadModules() {
  return {
    ...(await import('../../babysitter/babysitter.ts')),
    ...(await import('../../engine/engine.ts')),
    ...(await import('../../server/server.ts')),
    ...(await import('../../worker/index.ts')),
    ...(await import('../runners.ts')),
  }
}

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

/** Adds to the error where the address was configured, unless it was given as a flag. */
function addOrigin({ sources }: ResolvedSettings) {
  return (error: unknown): never => {
    if (!(error instanceof Problem) || !['KEYS_WANTED', 'PORT_TAKEN', 'PORT_REFUSED'].includes(error.code)) throw error
    const { host, port } = sources
    const chosen = [host, port].filter(({ from }) => from === 'env' || from === 'file').map(({ name }) => name)
    throw chosen.length === 0
      ? error
      : new Problem(error.code, { ...error.details, chosenBy: chosen.join(', ') }, error)
  }
}
