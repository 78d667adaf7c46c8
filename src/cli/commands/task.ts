import { statesOf } from '../../kernel/lifecycle.ts'
import { sanitizeJson } from '../../kernel/sanitize.ts'
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import type { PawlApi } from '../../protocol/api.ts'
import type { AttemptView, QueuedTask, TaskView } from '../../protocol/tasks/tasks.ts'
import { callFlags, callOf, onceFlag, pageFlags, said } from '../asking.ts'
import { type Answer, apiCommand, showingCommand } from '../command.ts'
import { exitCodes } from '../complain.ts'
import { eventLines } from '../events.ts'
import { findJobId, findTaskId } from '../find-id.ts'
import { type Line, styled } from '../line.ts'
import { between, relative } from '../moments.ts'
import { readJson } from '../parse.ts'
import { patiently, pause, type Waiting } from '../patience.ts'
import { causeOf, endedBadly, hasEnded, stateOf } from '../states.ts'
import { type Column, facts, pageEnd, table } from '../table.ts'
import { commandOf, fileLines, filesOf } from '../task-files.ts'

export const taskAdd = apiCommand({
  name: 'task add',
  summary: 'Queue a task.',
  takes: { type: 'its type', 'payload?': 'its payload, as JSON; default null' },
  flags: {
    queue: { kind: 'text', value: 'NAME', summary: 'the queue; default: the task type' },
    priority: { kind: 'number', value: 'N', summary: 'higher runs first; default: 0' },
    'run-at': { kind: 'text', value: 'TIME', summary: 'do not run before this time' },
    'run-in': { kind: 'number', value: 'SECONDS', summary: 'do not run for this many seconds' },
    'dedupe-key': {
      kind: 'text',
      value: 'KEY',
      summary: 'queue nothing while a task with this queue and key has not ended',
    },
    'correlation-id': { kind: 'text', value: 'ID', summary: 'an id of yours that connects related tasks' },
    wait: { kind: 'switch', short: 'w', summary: 'wait until it has ended, and show the result' },
    ...onceFlag,
    as: callFlags.as,
  },
  async run({ api, args, flags, screen, untilTold }) {
    const payload = args.payload === undefined ? null : readJson('PAYLOAD', args.payload)
    const { queue, priority, 'run-at': runAt, 'run-in': runInSeconds } = flags
    const { 'dedupe-key': dedupeKey, 'correlation-id': correlationId } = flags
    const { actor } = callOf(flags)
    const call = { actor, idempotencyKey: flags['idempotency-key'] }
    const options = said({ queue, priority, runAt, runInSeconds, dedupeKey, correlationId, ...call })
    const queued = await api.enqueue(args.type, payload, options)
    if (flags.wait) return waitForTask(api, queued, { screen, signal: untilTold() })
    const word = queued.deduplicated ? 'Another stands for it: ' : 'Queued: '
    return { data: queued, show: () => [`${word}${queued.id}`] }
  },
})

const lookMs = 200

/** Ends with 0 if the task ended well, and with 1 if it did not. It is queued, so a server that is away is waited for. */
async function waitForTask(api: PawlApi, queued: QueuedTask, waiting: Waiting): Promise<Answer> {
  const { id } = queued
  const look = () => patiently(() => api.task(id), waiting)
  let task = await look()
  while (task !== undefined && !hasEnded('task', task.state) && !waiting.signal.aborted) {
    await pause(lookMs, waiting.signal)
    task = (await look()) ?? task
  }
  if (task === undefined || !hasEnded('task', task.state)) {
    return { data: task ?? queued, code: 130, show: () => [`The task goes on: ${id}`] }
  }
  const { type, state } = task
  const why = task.error?.message ?? json(task.output) ?? ''
  return {
    data: task,
    code: endedBadly('task', state) ? exitCodes.bad : exitCodes.good,
    show: () => [[styled('bold', type), ' ', stateOf('task', state), why === '' ? '' : `: ${why}`]],
  }
}

const columns: readonly Column<TaskView>[] = [
  { head: 'ID', of: ({ id }) => id, cut: 'start', least: 9 },
  { head: 'STATE', of: ({ state }) => stateOf('task', state), least: 9 },
  { head: 'TYPE', of: ({ type }) => type },
  { head: 'QUEUE', of: ({ queue }) => queue, spare: true },
  { head: 'FAILURES', of: ({ failures }) => String(failures), align: 'right', spare: true },
  { head: 'CREATED', of: ({ createdAt }) => relative(createdAt), align: 'right', spare: true },
  { head: 'LAST ERROR', of: ({ error }) => error?.message ?? '', spare: true },
]

export const taskList = showingCommand({
  name: 'task list',
  summary: 'List tasks, newest first.',
  flags: {
    state: {
      kind: 'list',
      value: 'STATE',
      summary: 'only in this state, may be repeated',
      words: statesOf(taskLifecycle),
    },
    type: { kind: 'text', value: 'TYPE', summary: 'only this type' },
    queue: { kind: 'text', value: 'NAME', summary: 'only this queue' },
    job: { kind: 'text', value: 'ID', summary: 'only this job' },
    correlation: { kind: 'text', value: 'ID', summary: 'only with this correlation id' },
    ...pageFlags,
  },
  async run({ api, flags }) {
    const { type, queue, job, correlation: correlationId, limit, cursor } = flags
    const state = flags.state as readonly TaskState[] | undefined
    const jobId = job === undefined ? undefined : await findJobId(api, job)
    const page = await api.tasks(said({ state, type, queue, jobId, correlationId, limit, cursor }))
    const show = ({ width }: { width: number }): Line[] =>
      page.items.length === 0 ? ['There are no such tasks.'] : [...table(page.items, columns, width), ...pageEnd(page)]
    return { data: page, show }
  },
})

const attemptColumns: readonly Column<AttemptView>[] = [
  { head: 'ATTEMPT', of: ({ epoch }) => String(epoch), align: 'right' },
  { head: 'CLAIMED', of: ({ claimedAt }) => relative(claimedAt), align: 'right' },
  { head: 'TOOK', of: ({ claimedAt, endedAt }) => between(claimedAt, endedAt), align: 'right', spare: true },
  { head: 'OUTCOME', of: ({ outcome }) => (outcome === null ? 'in hand' : stateOf('task', outcome)) },
  { head: 'WORKER', of: ({ worker }) => worker, spare: true },
  { head: 'WHY', of: ({ cause, error }) => error?.message ?? causeOf(cause) ?? '' },
]

export const taskDescribe = showingCommand({
  name: 'task describe',
  summary: 'Show a task and its attempts.',
  takes: { id: 'the task, or the beginning or the end of its id' },
  async run({ api, args }) {
    const id = await findTaskId(api, args.id)
    const [task, attempts] = await Promise.all([api.task(id), api.attempts(id)])
    const files = await filesOf(api, task)
    const show = ({ width }: { width: number }): Line[] => [
      [styled('bold', task.type), '  ', stateOf('task', task.state)],
      ...taskFacts(task),
      ...(attempts.length === 0 ? [] : ['', ...table(attempts, attemptColumns, width)]),
      ...fileLines(files, width),
    ]
    return { data: { ...task, attempts, ...files }, show }
  },
})

const json = (value: unknown) => (value === null || value === undefined ? null : sanitizeJson(value))

function taskFacts(task: TaskView): Line[] {
  const { deadLetter, error } = task
  return facts([
    ['id', task.id],
    ['job', task.jobId],
    ['queue', task.queue],
    ['created', relative(task.createdAt)],
    ['runs', task.endedAt === null && task.startedAt === null ? relative(task.runAt) : null],
    ['ended', relative(task.endedAt)],
    ['worker', task.owner],
    ['lease', task.leaseUntil && `ends ${relative(task.leaseUntil)}`],
    ['charged', `${task.failures} failures, ${task.losses} losses`],
    ['error', error?.message],
    ['dead letter', deadLetter && `${deadLetter.reasonCode}${deadLetter.step ? ` in ${deadLetter.step}` : ''}`],
    ...payloadFacts(task),
    ['progress', json(task.progress)],
    ['checkpoint', json(task.checkpoint)],
    ['output', json(task.output)],
    ['correlation', task.correlationId],
  ])
}

/** Of a command, what it is; all of the payload is in the JSON. */
function payloadFacts({ payload }: TaskView): [string, string | null][] {
  const run = commandOf(payload)
  return run === undefined
    ? [['payload', json(payload)]]
    : [
        ['command', run.command],
        ['outputs', run.outputs],
      ]
}

export const taskEvents = showingCommand({
  name: 'task events',
  summary: 'Show the events of a task, oldest first.',
  takes: { id: 'the task, or the beginning or the end of its id' },
  flags: pageFlags,
  async run({ api, args, flags }) {
    const page = await api.taskEvents(await findTaskId(api, args.id), said(flags))
    return { data: page, show: ({ width }) => [...eventLines(page.items, width), ...pageEnd(page)] }
  },
})
