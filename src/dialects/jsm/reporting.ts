/** Handlers of workers' reports on the jobs that they hold, and of operators' requests. */
import type { TaskError } from '../../kernel/decide.ts'
import { Problem, type ProblemCode } from '../../kernel/problem.ts'
import type { HeldTask } from '../../protocol/tasks/sync.ts'
import { type Answer, type DialectRequest, good } from '../dialect.ts'
import type { ValuesOf } from '../kit/fields.ts'
import { readBody } from '../kit/read.ts'
import { asHolder, reportTo } from './holder.ts'
import { jobOf } from './job.ts'
import { callUnder } from './queueing.ts'
import {
  cancelFields,
  deadLetterFields,
  failFields,
  heartbeatFields,
  holderFields,
  retryFields,
  succeedFields,
} from './requests.ts'

const fromWorker = { required: ['worker'] } as const

export async function start(request: DialectRequest): Promise<Answer> {
  const holder = readBody(request.body ?? {}, holderFields, fromWorker)
  return asHolder(request, 'start', holder, held => reportTo(request, holder.worker, { started: [held] }))
}

export async function heartbeat(request: DialectRequest): Promise<Answer> {
  const body = readBody(request.body ?? {}, heartbeatFields, fromWorker)
  const { progress, checkpoint } = body
  return asHolder(request, 'heartbeat', body, held =>
    reportTo(request, body.worker, { started: [held], beats: [{ ...held, progress, checkpoint }] }),
  )
}

export async function succeed(request: DialectRequest): Promise<Answer> {
  const body = readBody(request.body ?? {}, succeedFields, fromWorker)
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
  const body = readBody(request.body ?? {}, failFields, fromWorker)
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
  const body = readBody(request.body ?? {}, cancelFields)
  const { reason, mode = modeIn(body) } = body
  const details = { mode, ...(reason !== undefined && { reason }) }
  return byHolderOrOperator(request, 'cancel', body, {
    asHolder: (held, call) => request.engine.cancelHeld(held, { ...call, ...details }),
    asOperator: (id, call) => request.engine.cancel(id, { ...call, ...details }),
  })
}

function modeIn({ soft, hard }: ValuesOf<typeof cancelFields>): 'soft' | 'hard' {
  if (soft === true && hard === true) {
    throw new Problem('OPTION_INVALID', { at: 'body', option: 'hard', must: 'not be combined with soft' })
  }
  return hard === true ? 'hard' : 'soft'
}

export async function deadLetter(request: DialectRequest): Promise<Answer> {
  const body = readBody(request.body ?? {}, deadLetterFields, { required: ['reason_code'] })
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
  body: ValuesOf<typeof holderFields & typeof retryFields>,
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
  const body = readBody(request.body ?? {}, retryFields)
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
