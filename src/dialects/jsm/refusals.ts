/** The document's error classes. A refused transition also tells the job's state and the requests that it accepts. */
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import { list, orNull, text, view, words } from '../../protocol/shapes.ts'
import type { Answer, Fault } from '../dialect.ts'
import { type Rewordings, reword } from '../kit/refusals.ts'
import { movesFrom, type State, stateOf, states } from './transitions.ts'

const errorClasses = ['ValidationError', 'TransientError', 'PermanentError', 'LeaseConflictError'] as const
type ErrorClass = (typeof errorClasses)[number]

/** Requests and fields that have another name in the engine. */
const namesHere: Readonly<Record<string, string>> = {
  deadLetter: 'dead_letter',
  redrive: 'retry',
  reasonCode: 'reason_code',
}
const nameHere = (name: unknown) => namesHere[String(name)] ?? name

const rewordings: Rewordings = {
  TASK_NOT_FOUND: { code: 'JOB_NOT_FOUND', message: 'No job has this id.' },
  TASK_BUSY: {
    code: 'JOB_BUSY',
    message: 'Another request is changing the job. Nothing was done; send the request again.',
  },
  LEASE_LOST: { message: 'The lease is lost. Stop working on the job; nothing was done.' },
  MOVE_REFUSED: {
    code: 'INVALID_TRANSITION',
    message: ({ state, move }) => `A job that is ${stateIn(state)} does not take ${nameHere(move)}.`,
  },
  IDEMPOTENCY_MISMATCH: { code: 'IDEMPOTENCY_CONFLICT' },
  OPTION_INVALID: {
    code: 'INVALID_REQUEST',
    message: ({ option, must }) => `"${nameHere(option)}" must ${must}.`,
  },
  BODY_INVALID: { code: 'INVALID_REQUEST' },
  KEY_MISSING: { code: 'UNAUTHORIZED' },
  PAYLOAD_INVALID: { message: ({ told, why }) => String(told ?? `The data cannot be stored: ${why}.`) },
  PAYLOAD_TOO_LARGE: {
    message: ({ told, bytes, limit }) => String(told ?? `The data has ${bytes} bytes; the limit is ${limit}.`),
  },
}

export function refuse(fault: Fault): Answer {
  // A refusal by the worker protocol has its own message.
  const told = fault.details.told as string | undefined
  const { status, code, message } = reword({ ...fault, message: told ?? fault.message }, rewordings)
  return {
    status,
    body: { error_class: classOf(fault), code, message, ...transitionsFrom(stateIn(fault.details.state)) },
  }
}

const transitionsFrom = (state: State | null) => ({ state, allowed: state === null ? null : movesFrom(state) })

function classOf({ status, code }: Fault): ErrorClass {
  if (code === 'LEASE_LOST') return 'LeaseConflictError'
  if (status >= 500 || status === 408 || code === 'TASK_BUSY') return 'TransientError'
  return [400, 413, 415, 422].includes(status) ? 'ValidationError' : 'PermanentError'
}

function stateIn(state: unknown): State | null {
  return typeof state === 'string' && Object.hasOwn(taskLifecycle.states, state) ? stateOf(state as TaskState) : null
}

export const faultSchema = view<Record<'error_class' | 'code' | 'message' | 'state' | 'allowed', unknown>>({
  error_class: words(...errorClasses),
  code: text,
  message: text,
  state: orNull(words(...states)),
  allowed: orNull(list(text)),
})
