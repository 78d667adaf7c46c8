/** Runs everything in one process: the store, the HTTP server, the babysitter and, for the demo, a worker. */
import { dialectsOf, type Settled, serverBoundsOf, storeOf } from '../../config/resolve.ts'
import { serverBounds } from '../../config/server-bound-settings.ts'
import { storeSettings } from '../../config/settings.ts'
import type { Engine } from '../../engine/engine.ts'
import { Problem } from '../../kernel/problem.ts'
import { isLoopback } from '../../server/authenticate.ts'
import { ownRoot } from '../../server/options.ts'
import { type Ask, command } from '../command.ts'
import { complaint } from '../complain.ts'
import { fileLimitsOf } from '../file-limits.ts'
import { podRulesOf } from '../kubernetes-settings.ts'
import { styled } from '../line.ts'
import { logOf } from '../log.ts'
import { pipelinesOf } from '../pipelines.ts'
import type { Screen } from '../screen.ts'
import { stateOf } from '../states.ts'
import { demoTasks, retellDemo, showDemo } from './demo.ts'

type Speaking = Pick<Ask, 'screen' | 'json'>

export const up = command({
  name: 'up',
  summary: 'Start Pawl: the store, the HTTP server and the background chores.',
  more: `Without --database the store is embedded, in a folder. On PostgreSQL any number of servers may run at once.
SIGINT and SIGTERM end it gracefully. With --json a first line says where it serves.`,
  flags: {
    demo: { kind: 'switch', summary: 'run a demo job first, and show its progress' },
    commands: { kind: 'switch', summary: 'run command tasks in worker processes on this machine' },
    workers: {
      kind: 'number',
      value: 'N',
      summary: 'with --commands: maximum number of worker processes; default: 16',
    },
  },
  settings: [
    'host',
    'port',
    'keysOnly',
    ...serverBounds,
    'maxPayloadBytes',
    'fileRoots',
    's3Buckets',
    'dialects',
    'dialectAtRoot',
    'jobnikLeaseSeconds',
    'falconeriLeaseSeconds',
    'data',
    'database',
    'schema',
    'connections',
    ...storeSettings,
    'log',
    'logLevel',
    'kubernetes',
    'k8sNamespace',
    'k8sUrl',
    'k8sImage',
    'k8sKeySecret',
    'k8sImages',
    'k8sNamespaces',
    'k8sSecrets',
    'k8sServiceAccounts',
  ],
  async run({ flags, settled, screen, json, untilTold }) {
    const told = untilTold()
    const { host, port, keysOnly, maxPayloadBytes, taskTypes = {} } = settled.values
    // Whoever has a key need not see what lies on this machine.
    const limits = fileLimitsOf(settled, keysOnly === true || !isLoopback(host) ? [] : undefined)
    const spoken = dialectsOf(settled)
    const store = storeOf(settled)
    const log = logOf(settled.values)
    const { allChores, openRunners, openEngine, startBabysitter, startServer, startWorker } = await parts()
    await using engine = await openEngine({
      ...store,
      maxPayloadBytes,
      ...(await pipelinesOf(settled)),
      log,
      // A server that starts no pods leaves the check to those that do.
      ...(settled.values.kubernetes === true && { podRules: podRulesOf(settled) }),
      ...(limits.roots !== undefined && { fileRoots: limits.roots }),
      ...(limits.buckets !== undefined && { s3Buckets: limits.buckets }),
    })
    for (const [type, options] of Object.entries(taskTypes)) await engine.putTaskType(type, options)
    const options = { host, port, keysOnly, ...serverBoundsOf(settled), log, ...spoken }
    const server = await startServer(engine, options).catch(sayingWhere(settled))
    await using _server = { [Symbol.asyncDispose]: () => server.close() }
    await using runners = await openRunners(engine, settled, server.url, { ...flags, limits })
    await using _babysitter = startBabysitter(engine, [...allChores(engine.context), ...runners.chores])
    await using _worker = flags.demo ? startWorker(engine, demoTasks, { name: 'demo', log }) : undefined
    const where = 'folder' in store ? store.folder : 'PostgreSQL'
    if (json) screen.jsonLine({ url: server.url, store: where, pid: process.pid })
    else screen.say(['Pawl is running at ', styled('bold', server.url), `. Its data is in ${where}.`])
    if (!json && spoken.rootDialect)
      screen.say(`The ${spoken.rootDialect} dialect is at ${server.url.slice(0, -ownRoot.length)}/.`)
    if (flags.demo) await demonstrate(engine, server.url, { screen, json }, told).catch(tellIn(screen))
    if (!json && !told.aborted) screen.say('Press Ctrl-C to stop.')
    await untilAborted(told)
    if (!json) screen.say('Stopping: running work is finished or requeued …')
    return { data: undefined }
  },
})

/** Imported only here, so that other commands start faster. */
async function parts() {
  return {
    ...(await import('../../babysitter/babysitter.ts')),
    ...(await import('../../engine/engine.ts')),
    ...(await import('../../server/server.ts')),
    ...(await import('../../worker/index.ts')),
    ...(await import('../runners.ts')),
  }
}

/** Runs the demo job and shows its progress. With --json, prints one line when it starts and one when it ends. */
async function demonstrate(engine: Engine, url: string, { screen, json }: Speaking, told: AbortSignal): Promise<void> {
  const job = await showDemo(engine, { screen, signal: told, silent: json }, job => {
    if (json) screen.jsonLine({ demo: job.id, state: job.state, url: `${url}/v1/jobs/${job.id}` })
    else screen.say(['Demo job: ', styled('cyan', `${url}/#/jobs/${job.id}`)])
  })
  if (told.aborted) return
  if (json) return screen.jsonLine({ demo: job.id, state: job.state })
  for (const line of await retellDemo(engine, job)) screen.say(line)
  screen.say([
    'The demo job ',
    stateOf('job', job.state),
    `. To see it again, run in another terminal: npx pawl job describe ${job.id.slice(-8)}`,
  ])
}

/** Prints a problem of the demo job, which somebody may have cancelled or deleted. The server keeps running. */
function tellIn(screen: Screen) {
  return (error: unknown): void => {
    if (!(error instanceof Problem)) throw error
    screen.keep()
    for (const line of complaint(error)) screen.note(line)
  }
}

/** An address that was not typed may be a surprise, so it is said who chose it. */
function sayingWhere({ sources }: Settled) {
  return (error: unknown): never => {
    if (!(error instanceof Problem) || !['KEYS_WANTED', 'PORT_TAKEN', 'PORT_REFUSED'].includes(error.code)) throw error
    const { host, port } = sources
    const chosen = [host, port].filter(({ from }) => from === 'env' || from === 'file').map(({ name }) => name)
    throw chosen.length === 0
      ? error
      : new Problem(error.code, { ...error.details, chosenBy: chosen.join(', ') }, error)
  }
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  // A promise keeps no process alive; what serves does.
  await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
}
