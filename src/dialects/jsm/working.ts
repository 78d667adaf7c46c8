/** What a worker says of a job that it holds, and what an operator asks for. */
import type { ReasonCode, Step, TaskError } from '../../kernel/decide.ts'
import { Problem, type ProblemCode } from '../../kernel/problem.ts'
import type { HeldTask } from '../../protocol/tasks/sync.ts'
import { type Answer, type Ask, good } from '../dialect.ts'
import {
  cancelFields,
  deadLetterFields,
  failFields,
  heartbeatFields,
  readBody,
  retryFields,
  startFields,
  succeedFields,
} from './bodies.ts'
import { asHolder, type Holder, say } from './holder.ts'
import { jobOf } from './job.ts'
import { callUnder } from './producing.ts'

export async function start(ask: Ask): Promise<Answer> {
  const holder = readBody<Holder>(ask.body, startFields, ['worker'])
  return asHolder(ask, 'start', holder, held => say(ask, holder.worker, { started: [held] }))
}

export async function heartbeat(ask: Ask): Promise<Answer> {
  const body = readBody<Holder & { progress?: unknown; checkpoint?: unknown }>(ask.body, heartbeatFields, ['worker'])
  const { progress, checkpoint } = body
  return asHolder(ask, 'heartbeat', body, held =>
    say(ask, body.worker, { started: [held], beats: [{ ...held, progress, checkpoint }] }),
  )
}

export async function succeed(ask: Ask): Promise<Answer> {
  const body = readBody<Holder & { result?: unknown }>(ask.body, succeedFields, ['worker'])
  return asHolder(ask, 'succeed', body, held =>
    say(ask, body.worker, { settled: [{ ...held, outcome: 'succeeded', output: body.result }] }),
  )
}

interface FailBody extends Holder {
  readonly error_class?: string
  readonly message?: string
  readonly stack?: string
  readonly stage?: Step
  readonly retry_in_sec?: number
}

/** What each class of errors makes of a job; any other is tried again. */
const classes: Readonly<Record<string, { outcome: 'failed' | 'dead_lettered'; error: Partial<TaskError> }>> = {
  ValidationError: { outcome: 'dead_lettered', error: { reasonCode: 'validation_failed' } },
  PermanentError: { outcome: 'failed', error: { permanent: true } },
}
const retried = { outcome: 'failed', error: {} } as const

export async function fail(ask: Ask): Promise<Answer> {
  const body = readBody<FailBody>(ask.body, failFields, ['worker'])
  const { error_class = 'TransientError', message = error_class, stack, stage, retry_in_sec } = body
  const { outcome, error } = Object.hasOwn(classes, error_class) ? classes[error_class]! : retried
  const told: TaskError = {
    name: error_class,
    message,
    ...(stack !== undefined && { stack }),
    ...(stage !== undefined && { step: stage }),
    ...(retry_in_sec !== undefined && { retryInSeconds: retry_in_sec }),
    ...error,
  }
  return asHolder(ask, 'fail', body, held => say(ask, body.worker, { settled: [{ ...held, outcome, error: told }] }))
}

/** What either may ask for: the holder under its fence, or an operator. */
interface EithersBody extends Partial<Holder> {
  readonly idempotency_key?: string
  readonly reason?: string
}

interface CancelBody extends EithersBody {
  readonly mode?: 'soft' | 'hard'
  readonly soft?: boolean
  readonly hard?: boolean
}

export async function cancel(ask: Ask): Promise<Answer> {
  const body = readBody<CancelBody>(ask.body, cancelFields)
  const { reason, mode = modeIn(body) } = body
  const said = { mode, ...(reason !== undefined && { reason }) }
  return byEither(ask, 'cancel', body, {
    asHolder: (held, call) => ask.engine.cancelHeld(held, { ...call, ...said }),
    asOperator: (id, call) => ask.engine.cancel(id, { ...call, ...said }),
  })
}

function modeIn({ soft, hard }: CancelBody): 'soft' | 'hard' {
  if (soft === true && hard === true) {
    throw new Problem('OPTION_INVALID', { at: 'body', option: 'hard', must: 'not be said together with soft' })
  }
  return hard === true ? 'hard' : 'soft'
}

interface DeadLetterBody extends EithersBody {
  readonly reason_code: ReasonCode
  readonly stage?: Step
}

export async function deadLetter(ask: Ask): Promise<Answer> {
  const body = readBody<DeadLetterBody>(ask.body, deadLetterFields, ['reason_code'])
  const { reason_code: reasonCode, stage, reason } = body
  const said = { reasonCode, ...(stage && { step: stage }), ...(reason !== undefined && { reason }) }
  return byEither(ask, 'dead_letter', body, {
    asHolder: (held, call) => ask.engine.deadLetterHeld(held, { ...call, ...said }),
    asOperator: (id, call) => ask.engine.deadLetter(id, { ...call, ...said }),
  })
}

type EithersCall = ReturnType<typeof callUnder> & { readonly epoch?: number }

interface EithersAct {
  asHolder(held: HeldTask, call: EithersCall): Promise<unknown>
  asOperator(id: string, call: EithersCall): Promise<unknown>
}

async function byEither(
  ask: Ask,
  request: 'cancel' | 'dead_letter',
  body: EithersBody,
  act: EithersAct,
): Promise<Answer> {
  const { worker, epoch } = body
  const call = callUnder(ask, body)
  if (worker !== undefined) {
    const holder = { worker, ...(epoch !== undefined && { epoch }) }
    return asHolder(ask, request, holder, held => act.asHolder(held, { ...call, actor: `worker:${worker}` }))
  }
  const id = ask.params.id!
  await act.asOperator(id, epoch === undefined ? call : { ...call, epoch })
  return good(jobOf(await ask.engine.task(id)))
}

/** Gives a dead letter another round. */
export async function retry(ask: Ask): Promise<Answer> {
  const body = readBody<{ idempotency_key?: string; reason?: string }>(ask.body, retryFields)
  const { engine } = ask
  const { id, state } = await engine.task(ask.params.id!)
  const { reason } = body
  const { refused } = await engine.redrive({ ids: [id], ...(reason !== undefined && { reason }) }, callUnder(ask, body))
  for (const { code } of refused) throw new Problem(code as ProblemCode, { id, state, move: 'retry' })
  return good(jobOf(await engine.task(id)))
}
