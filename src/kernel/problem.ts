/**
 * Everything that can go wrong and that a caller may want to act on. Error replies, client errors and
 * docs/problems.md are read off this table. A bug is not in it: bugs are plain errors and become a 500.
 */
export const problems = {
  TASK_NOT_FOUND: { status: 404, means: 'No task has this id.', hint: 'It may have been removed by retention.' },
  JOB_NOT_FOUND: {
    status: 404,
    means: 'No job has this id.',
    hint: 'It may have been deleted, or removed by retention.',
  },
  STAGE_NOT_FOUND: { status: 404, means: 'No stage has this id.', hint: 'It may have been removed with its job.' },
  SEALED: {
    status: 409,
    means: 'It is sealed: nothing can be added.',
    hint: 'Submit the job or the stage with `open: true`, and seal it when all is added.',
  },
  JOB_COMPENSATED: {
    status: 409,
    means: 'What the job had done has been undone, so it cannot go on.',
    hint: 'Clone it: a new job does the work again.',
  },
  SPAWN_REFUSED: {
    status: 409,
    means: 'A task cannot be made there.',
    hint: 'A task of a job may make tasks in its own stage, or in a later one that is open; the details say why not.',
  },
  TASK_TYPE_UNKNOWN: {
    status: 404,
    means: 'No task type has this name.',
    hint: 'Register it with defineTask, or check the spelling.',
  },
  MOVE_REFUSED: {
    status: 409,
    means: 'It is not in a state that this move starts from.',
    hint: 'The details name the state it is in and the moves that exist from there.',
  },
  LEASE_LOST: {
    status: 409,
    means: 'The task is not held under this epoch any more.',
    hint: 'Stop working on it: whoever holds it now, or the outcome that was recorded, wins.',
  },
  TASK_BUSY: {
    status: 409,
    means: 'Another transaction holds the task, and nothing was kept.',
    hint: 'Send it again; the lease is as it was.',
  },
  DEDUPE_CONFLICT: {
    status: 409,
    means: 'Another task stands for this dedupeKey now.',
    hint: 'Cancel or await the other task first; the details name it.',
  },
  IDEMPOTENCY_MISMATCH: {
    status: 422,
    means: 'This Idempotency-Key was used for another request.',
    hint: 'Use a new key for a new request; a key is kept for 24 hours.',
  },
  OPTION_UNKNOWN: {
    status: 400,
    means: 'There is no option of this name.',
    hint: 'See the suggestion in the details.',
  },
  OPTION_INVALID: { status: 400, means: 'An option has a value that cannot be used.', hint: 'See the details.' },
  PAYLOAD_INVALID: {
    status: 400,
    means: 'The payload cannot be kept.',
    hint: 'Payloads are JSON: no cycles, no functions, no NUL characters, at most 100 levels deep.',
  },
  PAYLOAD_REFUSED: { status: 422, means: 'The payload does not fit its type’s schema.', hint: 'The details list why.' },
  PAYLOAD_TOO_LARGE: {
    status: 413,
    means: 'The payload is larger than the limit.',
    hint: 'Keep large data in a file or an object store, and queue its address.',
  },
  TOO_MANY_TASKS: { status: 413, means: 'Too many tasks in one call.', hint: 'Send at most 10,000 at a time.' },
  SPEC_INVALID: {
    status: 422,
    means: 'The job spec cannot be run as it is written.',
    hint: 'Nothing was submitted; the details say what is wrong, and where.',
  },
  CURSOR_INVALID: { status: 400, means: 'This cursor was not made by this API.', hint: 'Start without one.' },
  CURSOR_GONE: {
    status: 410,
    means: 'This cursor is of an earlier generation of the store.',
    hint: 'The store was restored or moved. Read a snapshot, then follow the feed from its start.',
  },
  SCHEMA_NEWER: {
    status: 503,
    means: 'The database was migrated by a newer Pawl.',
    hint: 'Upgrade this process; nothing was changed.',
  },
  STORE_UNAVAILABLE: {
    status: 503,
    means: 'The store cannot be reached.',
    hint: 'Nothing is lost; the request can be repeated with its Idempotency-Key.',
  },
  STORE_LOCKED: {
    status: 409,
    means: 'Another live process has this data folder open.',
    hint: 'Stop it, choose another folder, or use a PostgreSQL server for several processes.',
  },
  TRANSACTION_OPEN: {
    status: 409,
    means: 'A call outside the open transaction would wait for it for ever.',
    hint: 'The embedded store has one connection: pass the transaction’s handle to calls made inside it.',
  },
} as const satisfies Record<string, { status: number; means: string; hint: string }>

export type ProblemCode = keyof typeof problems

export class Problem extends Error {
  override readonly name = 'Problem'
  readonly code: ProblemCode
  readonly details: Readonly<Record<string, unknown>>

  constructor(code: ProblemCode, details: Record<string, unknown> = {}, cause?: unknown) {
    super(`${problems[code].means}${said(details)} ${problems[code].hint}`, { cause })
    this.code = code
    this.details = details
  }

  get status(): number {
    return problems[this.code].status
  }
}

/** Details belong in the message too: it is often all that a log keeps. */
function said(details: Record<string, unknown>): string {
  const parts = Object.entries(details).map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`
}
