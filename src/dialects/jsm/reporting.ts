/**
 * Handlers of workers' reports on the jobs that they hold, and of operators' requests. Clients send their worker's name,
 * which the server binds to the epoch of the claim, so a worker that lost its job is refused. Two workers with the same
 * name are told apart only by the epoch, if they send it.
 */
import type { TaskError } from '../../kernel/decide.ts'
import { Problem, type ProblemCode } from '../../kernel/problem.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import type { HeldTask } from '../../protocol/tasks/sync.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import type { ValueOf } from '../../schema/check.ts'
import { type Answer, type DialectRequest, good } from '../dialect.ts'
import type { DialectEngine } from '../dialect-engine.ts'
import { unlessProblem } from '../kit/refusals.ts'
import { readBody } from '../kit/requests.ts'
import { callUnder } from './queueing.ts'
import { bodies } from './requests.ts'
import { jobOf } from './views.ts'
import { isAccepted, type Move, stateOf } from './words.ts'

export async function start(request: DialectRequest): Promise<Answer> {
  const holder = readBody(request.body ?? {}, bodies.start)
  return asHolder(request, 'start', holder, held => reportTo(request, holder.worker, { started: [held] }))
}

export async function heartbeat(request: DialectRequest): Promise<Answer> {
  const body = readBody(request.body ?? {}, bodies.heartbeat)
  const { progress, checkpoint } = body
  return asHolder(request, 'heartbeat', body, held =>
    reportTo(request, body.worker, { started: [held], beats: [{ ...held, progress, checkpoint }] }),
  )
}

export async function succeed(request: DialectRequest): Promise<Answer> {
  const body = readBody(request.body ?? {}, bodies.succeed)
  return asHolder(request, 'succeed', body, held =>
    reportTo(request, body.worker, { settled: [{ ...held, outcome: 'succeeded', output: body.result }] }),
  )
}

/** The outcome of each error class. Any other class is retried. */
const classes: Readonly<Record<string, { outcome: 'failed' | 'dead_lettered'; error: Partial<TaskError> }>> = {
  ValidationError: { outcome: 'dead_lettered', error: { reasonCode: 'validation_failed' } },
  PermanentError: { outcome: 'failed', error: { permanent: true } },
}
const retried = { outcome: 'failed', error: {} } as const

export async function fail(request: DialectRequest): Promise<Answer> {
  const body = readBody(request.body ?? {}, bodies.fail)
  const { error_class = 'TransientError', message = error_class, stack, stage, retry_in_sec } = body
  const { outcome, error } = Object.hasOwn(classes, error_class) ? classes[error_class]! : retried
  const taskError: TaskError = {
    name: error_class,
    message,
    ...(stack !== undefined && { stack }),
    ...(stage !== undefined && { step: stage }),
    ...(retry_in_sec !== undefined && { retryInSeconds: retry_in_sec }),
    ...error,
  }
  return asHolder(request, 'fail', body, held =>
    reportTo(request, body.worker, { settled: [{ ...held, outcome, error: taskError }] }),
  )
}

export async function cancel(request: DialectRequest): Promise<Answer> {
  const body = readBody(request.body ?? {}, bodies.cancel)
  const { reason, mode = modeIn(body) } = body
  const details = { mode, ...(reason !== undefined && { reason }) }
  return byHolderOrOperator(request, 'cancel', body, {
    asHolder: (held, call) => request.engine.cancelHeld(held, { ...call, ...details }),
    asOperator: (id, call) => request.engine.cancel(id, { ...call, ...details }),
  })
}

function modeIn({ soft, hard }: ValueOf<typeof bodies.cancel>): 'soft' | 'hard' {
  if (soft === true && hard === true) {
    throw new Problem('OPTION_INVALID', { at: 'body', option: 'hard', must: 'not be combined with soft' })
  }
  return hard === true ? 'hard' : 'soft'
}

export async function deadLetter(request: DialectRequest): Promise<Answer> {
  const body = readBody(request.body ?? {}, bodies.deadLetter)
  const { reason_code: reasonCode, stage, reason } = body
  const details = { reasonCode, ...(stage && { step: stage }), ...(reason !== undefined && { reason }) }
  return byHolderOrOperator(request, 'dead_letter', body, {
    asHolder: (held, call) => request.engine.deadLetterHeld(held, { ...call, ...details }),
    asOperator: (id, call) => request.engine.deadLetter(id, { ...call, ...details }),
  })
}

type ActCall = ReturnType<typeof callUnder> & { readonly epoch?: number }

interface Act {
  asHolder(held: HeldTask, call: ActCall): Promise<unknown>
  asOperator(id: string, call: ActCall): Promise<unknown>
}

/** With a worker's name, the request is made under its lease; without one, by an operator. */
async function byHolderOrOperator(
  request: DialectRequest,
  move: 'cancel' | 'dead_letter',
  body: Partial<ValueOf<typeof bodies.start>>,
  act: Act,
): Promise<Answer> {
  const { worker, epoch } = body
  const call = callUnder(request, body)
  if (worker !== undefined) {
    const holder = { worker, ...(epoch !== undefined && { epoch }) }
    return asHolder(request, move, holder, held => act.asHolder(held, { ...call, actor: `worker:${worker}` }))
  }
  const id = request.params.id!
  await act.asOperator(id, epoch === undefined ? call : { ...call, epoch })
  return good(jobOf(await request.engine.task(id)))
}

export async function retry(request: DialectRequest): Promise<Answer> {
  const body = readBody(request.body ?? {}, bodies.retry)
  const { engine } = request
  const { id, state } = await engine.task(request.params.id!)
  const { reason } = body
  const { refused } = await engine.redrive(
    { ids: [id], ...(reason !== undefined && { reason }) },
    callUnder(request, body),
  )
  for (const { code } of refused) throw new Problem(code as ProblemCode, { id, state, move: 'retry' })
  return good(jobOf(await engine.task(id)))
}

type Holder = ValueOf<typeof bodies.start>

/**
 * Does what the holder requests, and answers with the job. The engine has the fence. This only checks whether a held job
 * accepts the request in its state: within one epoch a running job never becomes assigned again.
 */
async function asHolder(
  request: DialectRequest,
  move: Move,
  holder: Holder,
  act: (held: HeldTask) => Promise<unknown>,
): Promise<Answer> {
  const { engine, params } = request
  const task = await engine.heldTask(params.id!)
  const epoch = epochOf(task, holder)
  const isRepeatedStart = move === 'start' && task.state === 'running'
  const isHolder = epoch === task.epoch && taskLifecycle.states[task.state].kind === 'held'
  if (isHolder && !isRepeatedStart && !isAccepted(move, stateOf(task.state))) throw refused(task, move)
  await unlessProblem(
    ['LEASE_LOST'],
    () => {
      if (epoch === undefined) throw new Problem('LEASE_LOST')
      return act({ id: task.id, epoch })
    },
    async () => {
      throw await reasonOfLoss(request, move, holder)
    },
  )
  return good(jobOf(await engine.task(task.id)))
}

/**
 * Undefined if another worker holds the job. An earlier epoch may repeat a report whose answer was lost; the engine
 * knows.
 */
function epochOf(task: TaskView, { worker, epoch = task.epoch }: Holder): number | undefined {
  return epoch === task.epoch && task.owner !== worker ? undefined : epoch
}

/**
 * A worker whose job was taken away has lost its lease. For a worker that ended the job itself, or a job that was never
 * claimed, the transition is invalid.
 */
async function reasonOfLoss(
  { engine, params }: DialectRequest,
  move: Move,
  { worker, epoch }: Holder,
): Promise<Problem> {
  const task = await engine.task(params.id!)
  const last = (await engine.attempts(task.id)).at(-1)
  const isOwn = last?.worker === worker && (epoch === undefined || epoch === last.epoch)
  const wasReported = isOwn && last.cause?.startsWith('reported_') === true
  if (last === undefined || wasReported) return refused(task, move)
  return new Problem('LEASE_LOST', { id: task.id, state: task.state })
}

function refused({ id, state }: TaskView, move: Move): Problem {
  return new Problem('MOVE_REFUSED', { id, state, move })
}

/** Sends one part of the worker protocol, and throws what it refuses. */
async function reportTo(
  { engine }: DialectRequest,
  worker: string,
  part: Parameters<DialectEngine['report']>[1],
): Promise<void> {
  const { refused } = await engine.report(worker, part)
  for (const { code, message } of refused) throw new Problem(code, { refusal: message })
}
