/** Three servers on one PostgreSQL and eight workers over HTTP, all killed and restarted at random. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from '../../src/client/client.ts'
import { isFinal } from '../../src/kernel/lifecycle.ts'
import { taskLifecycle } from '../../src/kernel/task.ts'
import type { TaskView } from '../../src/protocol/tasks/tasks.ts'
import { type Dice, dice, seed } from '../harness/dice.ts'
import { eventually } from '../harness/eventually.ts'
import { freePort } from '../harness/free-port.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { type Program, startProgram } from '../harness/program.ts'
import type { FleetPayload } from './programs/fleet-worker.ts'

/** The expected end of each task, by the behaviour of its handler. */
const expected: Record<FleetPayload['ends'], string> = {
  well: 'succeeded',
  'after a failure': 'succeeded',
  'for good': 'failed',
  skipped: 'skipped',
  aside: 'dead_lettered',
}

/** Kills servers and workers at random for a while. Then every task must have ended once, as its handler said. */
export async function killFleet(t: TestContext, chaosSeconds: number): Promise<void> {
  const story = await fresh(t)
  const ports = await Promise.all([freePort(), freePort(), freePort()])
  const urls = ports.map(port => `http://127.0.0.1:${port}`)
  const members = [
    ...ports.map(port => () => serverOn(t, story, port)),
    ...Array.from({ length: 8 }, (_, index) => () => workerFor(t, urls[index % urls.length]!)),
  ]
  const running = members.map(start => start())
  await Promise.all(running.map(program => program.printed('it is there', () => true)))

  const until = performance.now() + chaosSeconds * 1000
  const [queued] = await Promise.all([queueSteadily(urls, until), killAtRandom(members, running, until)])
  const open = async () => (await story.engine.tasks({ state: openStates, limit: 1 })).items.length
  await eventually('every task has ended', async () => (await open()) === 0, 150)

  const tasks = await everyTask(story)
  assert.deepEqual(new Set(tasks.map(({ id }) => id)), new Set(queued.keys()), 'what was queued, and nothing twice')
  for (const task of tasks) await assertEndedAsReported(story, task, queued.get(task.id)!)
}

const openStates = (Object.keys(taskLifecycle.states) as TaskView['state'][]).filter(
  state => !isFinal(taskLifecycle, state),
)

function serverOn(t: TestContext, { url, schema }: Fresh, port: number) {
  return startProgram(t, 'faults/programs/server.js', { database: url!, schema, port }, line => line)
}

function workerFor(t: TestContext, server: string) {
  return startProgram(t, 'faults/programs/fleet-worker.js', { server }, line => line)
}

/** Sends to any available server. A request whose answer is lost is repeated, and queues nothing twice. */
async function queueSteadily(urls: readonly string[], until: number): Promise<Map<string, FleetPayload>> {
  const chance = dice(seed)
  const clients = urls.map(server => connect({ server, patienceSeconds: 120 }))
  const queued = new Map<string, FleetPayload>()
  while (performance.now() < until) {
    const payloads = Array.from({ length: 20 }, () => somePayload(chance))
    const client = chance.among(clients)!
    const answers = await client.enqueueMany(payloads.map(payload => ({ type: 'work', payload })))
    for (const [index, { id }] of answers.entries()) queued.set(id, payloads[index]!)
    await sleep(200 + chance.throw() * 300)
  }
  return queued
}

function somePayload(chance: Dice): FleetPayload {
  const isUsual = chance.throw() < 0.7
  const isLong = chance.throw() < 0.1
  return {
    ends: isUsual ? 'well' : chance.among(Object.keys(expected) as FleetPayload['ends'][])!,
    ms: isLong ? 3000 : chance.throw() * 100,
  }
}

async function killAtRandom(
  members: readonly (() => Program<unknown>)[],
  running: Program<unknown>[],
  until: number,
): Promise<void> {
  const chance = dice(seed + 1)
  while (performance.now() < until) {
    await sleep(500 + chance.throw() * 1000)
    const index = Math.floor(chance.throw() * members.length)
    running[index]!.signal('SIGKILL')
    await running[index]!.ended
    await sleep(chance.throw() * 500)
    running[index] = members[index]!()
  }
}

async function everyTask({ engine }: Fresh): Promise<TaskView[]> {
  const tasks: TaskView[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await engine.tasks({ limit: 1000, ...(cursor !== undefined && { cursor }) })
    tasks.push(...page.items)
    if (page.next === null) return tasks
    cursor = page.next
  }
}

async function assertEndedAsReported({ engine }: Fresh, task: TaskView, { ends }: FleetPayload): Promise<void> {
  assert.equal(task.state, expected[ends], `${task.id} should end ${ends}`)
  const { items } = await engine.taskEvents(task.id)
  assert.deepEqual(
    items.map(({ seq }) => seq),
    Array.from({ length: task.seq }, (_, index) => index + 1),
    'one event for each seq',
  )
  const final = items.filter(({ to, from }) => to !== from && isFinal(taskLifecycle, to as TaskView['state']))
  assert.equal(final.length, 1, `${task.id} ended once`)
  // Stored outputs were made under the lease that ended the task, not under one that was lost.
  if (task.state === 'succeeded') assert.deepEqual(task.output, { epoch: final[0]!.epoch })
}
