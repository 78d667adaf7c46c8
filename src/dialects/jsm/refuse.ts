/** How it refuses: the document's classes of errors, and for a transition what the job is and what it would hear. */
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import { list, orNull, text, view, words } from '../../protocol/shapes.ts'
import type { Answer, Fault } from '../dialect.ts'
import { allowedIn, type Request, type State, stateOf, states } from './transitions.ts'

const errorClasses = ['ValidationError', 'TransientError', 'PermanentError', 'LeaseConflictError'] as const
type ErrorClass = (typeof errorClasses)[number]

export interface Refusal {
  readonly error_class: ErrorClass
  readonly code: string
  readonly message: string
  /** What the job is, where that is why. */
  readonly state: State | null
  /** What could be asked of it instead. */
  readonly allowed: readonly Request[] | null
}

/** Its words for faults of which ours speak of tasks; any other keeps its code. */
const codes: Readonly<Record<string, string>> = {
  TASK_NOT_FOUND: 'JOB_NOT_FOUND',
  TASK_BUSY: 'JOB_BUSY',
  MOVE_REFUSED: 'INVALID_TRANSITION',
  IDEMPOTENCY_MISMATCH: 'IDEMPOTENCY_CONFLICT',
  OPTION_INVALID: 'INVALID_REQUEST',
  KEY_MISSING: 'UNAUTHORIZED',
  BODY_INVALID: 'INVALID_REQUEST',
}

/** What the engine calls otherwise than it was asked. */
const called: Readonly<Record<string, string>> = {
  deadLetter: 'dead_letter',
  redrive: 'retry',
  reasonCode: 'reason_code',
}
const wordOf = (name: unknown) => called[String(name)] ?? name

export function refuse(fault: Fault): Answer {
  const state = stateIn(fault.details.state)
  const body: Refusal = {
    error_class: classOf(fault),
    code: codes[fault.code] ?? fault.code,
    message: messageOf(fault, state),
    state,
    allowed: state === null ? null : allowedIn(state),
  }
  return { status: fault.status, body }
}

function classOf({ status, code }: Fault): ErrorClass {
  if (code === 'LEASE_LOST') return 'LeaseConflictError'
  if (status >= 500 || status === 408 || code === 'TASK_BUSY') return 'TransientError'
  return [400, 413, 415, 422].includes(status) ? 'ValidationError' : 'PermanentError'
}

function messageOf({ code, message, details }: Fault, state: State | null): string {
  // What the worker protocol refused comes with its own sentence.
  const told = details.told as string | undefined
  switch (code) {
    case 'TASK_NOT_FOUND':
      return 'No job has this id.'
    case 'TASK_BUSY':
      return 'The job is being changed just now, and nothing was done; ask again.'
    case 'LEASE_LOST':
      return 'The lease is not held any more: stop working on the job, nothing was done.'
    case 'MOVE_REFUSED':
      return `A job that is ${state} does not take ${wordOf(details.move)}.`
    case 'OPTION_INVALID':
      return `"${wordOf(details.option)}" must ${details.must}.`
    case 'PAYLOAD_INVALID':
      return told ?? `What was sent cannot be kept: ${details.why}.`
    case 'PAYLOAD_TOO_LARGE':
      return told ?? `What was sent has ${details.bytes} bytes, and may have ${details.limit}.`
    default:
      return told ?? message
  }
}

function stateIn(state: unknown): State | null {
  return typeof state === 'string' && Object.hasOwn(taskLifecycle.states, state) ? stateOf(state as TaskState) : null
}

export const refusalSchema = view<Refusal>({
  error_class: words(...errorClasses),
  code: text,
  message: text,
  state: orNull(words(...states)),
  allowed: orNull(list(text)),
})
