import { shortEcho } from './echo.ts'
import { fileProblems } from './file-problems.ts'
import { kubernetesProblems } from './kubernetes-problems.ts'
import { storeProblems } from './store-problems.ts'
import { streamProblems } from './stream-problems.ts'

/**
 * Everything that can go wrong and that a caller may want to act on. Error replies, client errors and
 * docs/problems.md are read off this table. A bug is not in it: bugs are plain errors and become a 500.
 */
export const problems = {
  WORKER_AMBIGUOUS: {
    status: 409,
    means: 'Several workers answer to this name.',
    hint: 'Nothing was changed. The details name them: give the whole name of one.',
  },
  TASK_NOT_FOUND: { status: 404, means: 'No task has this id.', hint: 'It may have been removed by retention.' },
  JOB_NOT_FOUND: {
    status: 404,
    means: 'No job has this id.',
    hint: 'It may have been deleted, or removed by retention.',
  },
  STAGE_NOT_FOUND: { status: 404, means: 'No stage has this id.', hint: 'It may have been removed with its job.' },
  REDRIVE_NOT_FOUND: {
    status: 404,
    means: 'No redrive has this id.',
    hint: 'How it went is kept for 14 days; the events of the tasks are kept with them.',
  },
  ID_TAKEN: {
    status: 409,
    means: 'This id is used already, or was.',
    hint: 'Choose another, or none: it is free 30 days after what had it was removed. An Idempotency-Key makes a request repeatable.',
  },
  TASK_OF_JOB: {
    status: 409,
    means: 'The task belongs to a job, and goes with it.',
    hint: 'Delete the job, which the details name, once it has ended.',
  },
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
  NOTHING_TO_REDO: {
    status: 409,
    means: 'All tasks of the job have succeeded, so a clone would have nothing to do.',
    hint: 'Submit the job anew, to do all of it again.',
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
  PIPELINE_UNKNOWN: {
    status: 404,
    means: 'No pipeline has this name.',
    hint: 'The details list those there are; the setting `pipelines` of the server, or of the engine, names others.',
  },
  CURSOR_INVALID: { status: 400, means: 'This cursor was not made by this API.', hint: 'Start without one.' },
  CURSOR_GONE: {
    status: 410,
    means: 'The history that this cursor belongs to is gone: the store was restored, copied, moved or failed over.',
    hint: 'Read a snapshot of what you follow, then follow the feed without a cursor.',
  },
  ...storeProblems,
  KEYS_WANTED: {
    status: 409,
    means: 'On an address that others can reach, the server wants keys, and there are none.',
    hint: 'Make one with `pawl key create --role admin --name NAME` on the same store, or listen on 127.0.0.1.',
  },
  PORT_TAKEN: {
    status: 409,
    means: 'Something else listens on this port.',
    hint: 'Stop it, or choose another with --port (0: any that is free).',
  },
  PORT_REFUSED: {
    status: 409,
    means: 'The system does not let the server listen there.',
    hint: 'The host must be an address of this machine; ports below 1024 need a privileged user.',
  },
  KEY_NOT_FOUND: { status: 404, means: 'No key has this id.', hint: 'Those there are, `pawl key list` shows.' },
  KEY_MISSING: {
    status: 401,
    means: 'This server wants a key, and none that it knows was sent.',
    hint: 'Send `Authorization: Bearer pawl_…`; an admin makes one with `pawl key create`.',
  },
  KEY_REFUSED: {
    status: 403,
    means: 'This key may not do that.',
    hint: 'The details say what its role lacks; an admin can make another key.',
  },
  HOST_REFUSED: {
    status: 403,
    means: 'A server without keys answers only to programs on its own machine.',
    hint: 'Call it as localhost or 127.0.0.1 and not from a web page, or make a key.',
  },
  ROUTE_NOT_FOUND: {
    status: 404,
    means: 'There is nothing at this address.',
    hint: 'The pages `docs` and `openapi.json`, beside `v1`, list what there is.',
  },
  METHOD_REFUSED: {
    status: 405,
    means: 'This address does not know this method.',
    hint: 'The details list those it knows.',
  },
  BODY_INVALID: { status: 400, means: 'The body is not the JSON that was wanted.', hint: 'The details say why.' },
  BODY_TOO_LARGE: {
    status: 413,
    means: 'The body is larger than the limit.',
    hint: 'Send less at a time; the limit is a setting of the server.',
  },
  BODY_TYPE: {
    status: 415,
    means: 'Bodies must be application/json, in UTF-8 and not compressed.',
    hint: 'Send `content-type: application/json`; a job spec may also be application/yaml.',
  },
  REQUEST_INVALID: { status: 400, means: 'This is not a request that HTTP allows.', hint: 'The details say why.' },
  REQUEST_SLOW: {
    status: 408,
    means: 'The request took too long to arrive.',
    hint: 'Send it again; the limit is a setting of the server.',
  },
  HEADERS_TOO_LARGE: {
    status: 431,
    means: 'The address and the headers are larger than the limit.',
    hint: 'Together they may have 16 KiB.',
  },
  ...streamProblems,
  SERVER_CLOSING: {
    status: 503,
    means: 'The server is shutting down, and has not looked at this.',
    hint: 'Send it again: to another server, or when this one is back.',
  },
  SERVER_BLOCKED: {
    status: 503,
    means: 'The server was busy with one computation for so long that it could not answer anybody.',
    hint: 'Its log says what it was doing, as loop.blocked. It is ready again when this has not happened for 10 seconds.',
  },
  SERVER_UNREACHABLE: {
    status: 503,
    means: 'The server cannot be reached, or did not answer in time.',
    hint: 'Is it running? `pawl up` starts one; --server or PAWL_SERVER says where it is.',
  },
  ...kubernetesProblems,
  COMMAND_INVALID: {
    status: 400,
    means: 'The command makes no sense as it was typed.',
    hint: 'See its --help.',
  },
  FILE_INVALID: { status: 400, means: 'This file cannot be used.', hint: 'The details say why.' },
  TRANSACTION_REMOTE: {
    status: 409,
    means: 'A transaction cannot be passed on to an engine in another process.',
    hint: 'Open the engine in this process, on the same database; or return the output, and make the work idempotent.',
  },
  TRANSACTION_OPEN: {
    status: 409,
    means: 'A call outside the open transaction would wait for it for ever.',
    hint: 'The embedded store has one connection: pass the transaction’s handle to calls made inside it.',
  },
  ...fileProblems,
} as const satisfies Record<string, { status: number; means: string; hint: string }>

export type ProblemCode = keyof typeof problems

export class Problem extends Error {
  override readonly name = 'Problem'
  readonly code: ProblemCode
  readonly details: Readonly<Record<string, unknown>>

  constructor(code: ProblemCode, details: Record<string, unknown> = {}, cause?: unknown) {
    const short = shortEcho(details) as Record<string, unknown>
    super(`${problems[code].means}${said(short)} ${problems[code].hint}`, { cause })
    this.code = code
    this.details = short
  }

  get status(): number {
    return problems[this.code].status
  }
}

/** One of many that a request was for, and why nothing was done to it. */
export interface Refused {
  readonly id: string
  readonly code: string
  readonly message: string
}

const passing: readonly ProblemCode[] = [
  'STORE_UNAVAILABLE',
  'STORE_BUSY',
  'STORE_FULL',
  'STORE_READ_ONLY',
  'STORE_CROWDED',
  'STORE_REFUSED',
  'SERVER_UNREACHABLE',
  'SERVER_CLOSING',
  'SERVER_BLOCKED',
  'SPECS_WAIT',
  'STREAMS_FULL',
  'SUBMIT_CUT_OFF',
  'KUBERNETES_UNREACHABLE',
  'REQUEST_SLOW',
  'TASK_BUSY',
  'FILES_UNAVAILABLE',
]

/** It stays until somebody does something about it; but then the same task succeeds. */
const mendable: readonly ProblemCode[] = ['FILES_DENIED', 'DISK_FULL']

/** It is nobody's fault and goes away: the same request may be answered a little later. */
export function willPass(error: unknown): boolean {
  return error instanceof Problem && passing.includes(error.code)
}

/** A task that met it is tried again as its policy says; of other problems the next attempt would meet the same. */
export function isWorthRetry(error: unknown): boolean {
  return willPass(error) || (error instanceof Problem && mendable.includes(error.code))
}

/** Details belong in the message too: it is often all that a log keeps. */
function said(details: Record<string, unknown>): string {
  const parts = Object.entries(details).map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`
}

/** For `catch`: a problem of this code is none to whoever says so; all else is thrown on. */
export function unless(code: ProblemCode): (error: unknown) => void {
  return error => {
    if (!(error instanceof Problem && error.code === code)) throw error
  }
}
