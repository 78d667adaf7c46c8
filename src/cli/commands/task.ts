import { type ReasonCode, reasonCodes, type Step, steps, type TaskError } from '../../kernel/decide.ts'
import { type ErrorLine, errorLines } from '../../kernel/error-lines.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import { sanitizeJson } from '../../kernel/sanitize.ts'
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import { withoutUndefined } from '../../kernel/without-undefined.ts'
import type { PawlApi } from '../../protocol/operations.ts'
import type { AttemptView, QueuedTask, TaskView } from '../../protocol/tasks/tasks.ts'
import { apiCommand, type Command, type CommandResult, showingCommand } from '../command.ts'
import { counted } from '../counted.ts'
import { durationBetween, relativeTime } from '../durations.ts'
import { commandsFor } from '../entity-commands.ts'
import { exitCodes } from '../error-message.ts'
import { findJobId, findTaskId, taskParameter } from '../find-id.ts'
import { readJson } from '../parse.ts'
import { controlOptions, historyFlags, idempotencyFlag, pageFlags, stateFlag } from '../shared-flags.ts'
import { endedBadly, hasEnded, readableCause, styledState } from '../states.ts'
import { type Line, styled } from '../styled-line.ts'
import { type Column, keyValueLines, pageResult, table } from '../table.ts'
import { commandOf, fileLines, filesOf } from '../task-files.ts'
import { type RetryOptions, retryUntilAvailable } from '../waiting.ts'

export const taskAdd = apiCommand({
  name: 'task add',
  summary: 'Queue a task.',
  parameters: { type: 'the type of the task', 'payload?': 'its payload as JSON; default: null' },
  completes: 'type',
  flags: {
    queue: { kind: 'text', value: 'NAME', summary: 'the queue; default: the task type', completes: 'queue' },
    priority: { kind: 'number', value: 'N', summary: 'higher runs first; default: 0' },
    'run-at': { kind: 'text', value: 'TIME', summary: 'do not run before this time' },
    'run-in': { kind: 'number', value: 'SECONDS', summary: 'do not run for this many seconds' },
    'dedupe-key': {
      kind: 'text',
      value: 'KEY',
      summary: 'do not queue the task while another one with the same queue and key has not ended',
    },
    'correlation-id': { kind: 'text', value: 'ID', summary: 'an id of yours that connects related tasks' },
    wait: { kind: 'switch', short: 'w', summary: 'wait until the task has ended, and show its result' },
    ...idempotencyFlag,
    as: historyFlags.as,
  },
  async run({ api, args, flags, output, stopSignal }) {
    const payload = args.payload === undefined ? null : readJson('PAYLOAD', args.payload)
    const { queue, priority, 'run-at': runAt, 'run-in': runInSeconds } = flags
    const { 'dedupe-key': dedupeKey, 'correlation-id': correlationId } = flags
    const { actor } = controlOptions(flags)
    const call = { actor, idempotencyKey: flags['idempotency-key'] }
    const options = withoutUndefined({ queue, priority, runAt, runInSeconds, dedupeKey, correlationId, ...call })
    const queued = await api.enqueue(args.type, payload, options)
    if (flags.wait) return waitForTask(api, queued, { output, signal: stopSignal() })
    const text = queued.deduplicated ? 'Not queued, because of its dedupe key. Existing task: ' : 'Queued: '
    return { data: queued, show: () => [`${text}${queued.id}`] }
  },
})

const waitSeconds = 20

/** Because the task is already queued, even the first read is retried while the server is unavailable. */
async function waitForTask(api: PawlApi, queued: QueuedTask, options: RetryOptions): Promise<CommandResult> {
  const { id } = queued
  const read = () => retryUntilAvailable(() => api.task(id, { waitSeconds }, options.signal), options)
  let task = await read()
  while (task !== undefined && !hasEnded('task', task.state) && !options.signal.aborted) task = (await read()) ?? task
  if (task === undefined || !hasEnded('task', task.state)) {
    return {
      data: task ?? queued,
      code: 130,
      show: () => [`The task has not ended yet. To see its state: pawl task describe ${id}`],
    }
  }
  const { type, state } = task
  const result = task.error?.message ?? json(task.output) ?? ''
  return {
    data: task,
    code: endedBadly('task', state) ? exitCodes.bad : exitCodes.good,
    show: () => [[styled('bold', type), ' ', styledState('task', state), result === '' ? '' : `: ${result}`]],
  }
}

const columns: readonly Column<TaskView>[] = [
  { header: 'ID', value: ({ id }) => id, cut: 'start', minWidth: 9 },
  { header: 'STATE', value: ({ state }) => styledState('task', state), minWidth: 9 },
  { header: 'TYPE', value: ({ type }) => type },
  { header: 'QUEUE', value: ({ queue }) => queue, optional: true },
  { header: 'FAILURES', value: ({ failures }) => String(failures), align: 'right', optional: true },
  { header: 'CREATED', value: ({ createdAt }) => relativeTime(createdAt), align: 'right', optional: true },
  { header: 'LAST ERROR', value: ({ error }) => error?.message ?? '', optional: true },
]

export const taskList = showingCommand({
  name: 'task list',
  summary: 'List tasks, newest first.',
  flags: {
    state: stateFlag(statesOf(taskLifecycle)),
    type: { kind: 'text', value: 'TYPE', summary: 'only this type', completes: 'type' },
    queue: { kind: 'text', value: 'NAME', summary: 'only this queue', completes: 'queue' },
    job: { kind: 'text', value: 'ID', summary: 'only this job', completes: 'job' },
    correlation: { kind: 'text', value: 'ID', summary: 'only with this correlation id' },
    ...pageFlags,
  },
  async run({ api, flags }) {
    const { type, queue, job, correlation: correlationId, limit, cursor } = flags
    const state = flags.state as readonly TaskState[] | undefined
    const jobId = job === undefined ? undefined : await findJobId(api, job)
    const page = await api.tasks(withoutUndefined({ state, type, queue, jobId, correlationId, limit, cursor }))
    return pageResult(page, columns, 'There are no matching tasks.')
  },
})

const attemptColumns: readonly Column<AttemptView>[] = [
  { header: 'ATTEMPT', value: ({ epoch }) => String(epoch), align: 'right' },
  { header: 'CLAIMED', value: ({ claimedAt }) => relativeTime(claimedAt), align: 'right' },
  {
    header: 'TOOK',
    value: ({ claimedAt, endedAt }) => durationBetween(claimedAt, endedAt),
    align: 'right',
    optional: true,
  },
  { header: 'OUTCOME', value: ({ outcome }) => (outcome === null ? 'in progress' : styledState('task', outcome)) },
  { header: 'WORKER', value: ({ worker }) => worker, optional: true },
  { header: 'REASON', value: ({ cause, reason, error }) => error?.message ?? reason ?? readableCause(cause) ?? '' },
]

export const taskDescribe = showingCommand({
  name: 'task describe',
  summary: 'Show a task and its attempts.',
  parameters: taskParameter,
  completes: 'task',
  async run({ api, args }) {
    const id = await findTaskId(api, args.id)
    const [task, attempts] = await Promise.all([api.task(id), api.attempts(id)])
    const files = await filesOf(api, task)
    const show = ({ width }: { width: number }): Line[] => [
      [styled('bold', task.type), '  ', styledState('task', task.state)],
      ...taskFacts(task),
      ...(task.error === null ? [] : ['', ...linesOfError(task.error)]),
      ...(attempts.length === 0 ? [] : ['', ...table(attempts, attemptColumns, width)]),
      ...fileLines(files, width),
    ]
    return { data: { ...task, attempts, ...files }, show }
  },
})

/** The stack of an error and those of its causes. Lines of Node and of packages are dim, the user's own stand out. */
function linesOfError(error: TaskError): Line[] {
  const lines = errorLines(error)
  const toLine = ({ depth, text, kind }: ErrorLine, index: number): Line => {
    const shown = text.replaceAll('\t', '    ')
    const style = kind === 'inside' ? 'dim' : index === 0 ? 'red' : kind === 'place' ? 'cyan' : undefined
    return ['  '.repeat(depth + 1), style === undefined ? shown : styled(style, shown)]
  }
  const omitted = lines.length - mostErrorLines
  const more: Line[] = omitted > 0 ? [styled('dim', `  … and ${omitted} more lines: --json shows all`)] : []
  return [...lines.slice(0, mostErrorLines).map(toLine), ...more]
}

const mostErrorLines = 100

const json = (value: unknown) => (value === null || value === undefined ? null : sanitizeJson(value))

function taskFacts(task: TaskView): Line[] {
  const { deadLetter, error } = task
  return keyValueLines([
    ['id', task.id],
    ['job', task.jobId],
    ['queue', task.queue],
    ['created', relativeTime(task.createdAt)],
    ['runs', task.endedAt === null && task.startedAt === null ? relativeTime(task.runAt) : null],
    ['ended', relativeTime(task.endedAt)],
    ['worker', task.owner],
    ['lease', task.leaseUntil && `ends ${relativeTime(task.leaseUntil)}`],
    ['charged', `${counted(task.failures, 'failure')}, ${counted(task.losses, 'loss', 'losses')}`],
    ['error', error?.message],
    ['dead letter', deadLetter && `${deadLetter.reasonCode}${deadLetter.step ? ` in ${deadLetter.step}` : ''}`],
    ...payloadFacts(task),
    ['progress', json(task.progress)],
    ['checkpoint', json(task.checkpoint)],
    ['output', json(task.output)],
    ['correlation', task.correlationId],
  ])
}

/** For a command task, only the command and its outputs. The JSON output has the whole payload. */
function payloadFacts({ payload }: TaskView): [string, string | null][] {
  const run = commandOf(payload)
  return run === undefined
    ? [['payload', json(payload)]]
    : [
        ['command', run.command],
        ['outputs', run.outputs],
      ]
}

const { control, cancel, remove, events } = commandsFor<TaskView>({
  noun: 'task',
  parameters: taskParameter,
  find: findTaskId,
  line: ({ type, id, state, cancelRequestedAt, endedAt }) => [
    styled('bold', type),
    ` ${id} is `,
    styledState('task', state),
    cancelRequestedAt === null || endedAt !== null ? '' : '; its worker will be told to stop',
  ],
})

export const taskEvents = events((api, id, query) => api.taskEvents(id, query))

export const taskControl: readonly Command[] = [
  cancel((api, id, call) => api.cancel(id, call)),
  control('resume', 'Start the next round of a cancelled task.', (api, id, call) => api.resume(id, call)),
  control('retry', 'Start the next round of a failed or expired task.', (api, id, call) => api.retry(id, call)),
  control(
    'dead-letter',
    'Move a task to the dead-letter queue.',
    (api, id, call, { code = 'policy_violation', step }) =>
      api.deadLetter(id, {
        ...call,
        reasonCode: code as ReasonCode,
        ...withoutUndefined({ step: step as Step | undefined }),
      }),
    {
      code: { kind: 'text', value: 'CODE', summary: 'the reason code; default: policy_violation', words: reasonCodes },
      step: { kind: 'text', value: 'STEP', summary: 'the step that failed', words: steps },
    },
  ),
  remove('Delete a standalone task that has ended, with its history.', (api, id, call) => api.deleteTask(id, call)),
]
