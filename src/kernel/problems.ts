import { fileProblems } from './file-problems.ts'
import { storeProblems } from './store-problems.ts'

/**
 * Every error that a caller may want to act on. Error replies, client errors and docs/problems.md are derived from
 * this table. Bugs are not in it: they are plain errors and become a 500.
 */
export const problems = {
  WORKER_AMBIGUOUS: {
    status: 409,
    means: 'Several workers match this name.',
    hint: 'Nothing was changed. Use the full name of one of the workers listed in the details.',
  },
  TASK_NOT_FOUND: { status: 404, means: 'No task has this ID.', hint: 'Retention may have removed it.' },
  JOB_NOT_FOUND: {
    status: 404,
    means: 'No job has this ID.',
    hint: 'It may have been deleted, or removed by retention.',
  },
  STAGE_NOT_FOUND: { status: 404, means: 'No stage has this ID.', hint: 'It may have been removed with its job.' },
  REDRIVE_NOT_FOUND: {
    status: 404,
    means: 'No redrive has this ID.',
    hint: 'A redrive is kept for 14 days. The events of its tasks are kept as long as the tasks.',
  },
  ID_TAKEN: {
    status: 409,
    means: 'This ID is in use, or was used recently.',
    hint: 'Choose another ID, or omit it. An ID is free again 30 days after its owner was removed. To make a request repeatable, send an Idempotency-Key.',
  },
  TASK_OF_JOB: {
    status: 409,
    means: 'The task belongs to a job and can only be deleted with it.',
    hint: 'Delete the job named in the details once it has ended.',
  },
  SEALED: {
    status: 409,
    means: 'The job or stage is sealed: nothing can be added to it.',
    hint: 'Submit the job or stage with `open: true`, and seal it when everything has been added.',
  },
  JOB_COMPENSATED: {
    status: 409,
    means: 'The job cannot continue because its work has been undone.',
    hint: 'Clone the job to do the work again in a new one.',
  },
  NOTHING_TO_REDO: {
    status: 409,
    means: 'All tasks of the job have succeeded, so a clone would have nothing to do.',
    hint: 'To do all of the work again, submit the job again.',
  },
  SPAWN_REFUSED: {
    status: 409,
    means: 'The task cannot be created in this stage.',
    hint: 'A task of a job can create tasks in its own stage or in a later stage that is open. The details give the reason.',
  },
  RESULT_TIMEOUT: {
    status: 408,
    means: 'The task or job has not ended in this time.',
    hint: 'It keeps running. Wait for its result again, or pass a larger timeoutSeconds.',
  },
  TASK_TYPE_UNKNOWN: {
    status: 404,
    means: 'No task type has this name.',
    hint: 'Check the spelling, configure the type with `pawl type set`, or start a worker that defines it.',
  },
  MOVE_REFUSED: {
    status: 409,
    means: 'This operation is not possible in the current state.',
    hint: 'The details name the current state and the moves that are possible from it.',
  },
  LEASE_LOST: {
    status: 409,
    means: 'The task is no longer held under this epoch.',
    hint: 'Stop working on it. The current holder, or the outcome already recorded, takes precedence.',
  },
  TASK_BUSY: {
    status: 409,
    means: 'Another transaction has locked the task, so nothing was recorded.',
    hint: 'Send the request again. The lease is unchanged.',
  },
  DEDUPE_CONFLICT: {
    status: 409,
    means: 'Another task already uses this dedupeKey.',
    hint: 'Cancel that task (`heldBy`, where it is known), or wait until it has ended.',
  },
  IDEMPOTENCY_MISMATCH: {
    status: 422,
    means: 'This Idempotency-Key was already used for a different request.',
    hint: 'Use a new key for each new request. A key is kept for 24 hours.',
  },
  OPTION_UNKNOWN: {
    status: 400,
    means: 'Unknown option.',
    hint: 'Check the spelling; the details suggest a similar name if there is one.',
  },
  OPTION_INVALID: {
    status: 400,
    means: 'An option has an invalid value.',
    hint: 'The details name the option and the values that it accepts.',
  },
  PAYLOAD_INVALID: {
    status: 400,
    means: 'A payload, an output or metadata cannot be stored.',
    hint: 'It must be JSON: no cycles, no functions, no NUL characters, at most 100 levels deep.',
  },
  PAYLOAD_REFUSED: {
    status: 400,
    means: 'The payload does not match the schema of its task type.',
    hint: 'The details list the mismatches.',
  },
  PAYLOAD_TOO_LARGE: {
    status: 413,
    means: 'A payload, an output or metadata is larger than the limit.',
    hint: 'Keep large data in a file or an object store, and put its address in the payload.',
  },
  TOO_MANY_TASKS: {
    status: 413,
    means: 'Too many tasks in one request.',
    hint: 'Send at most 10,000 tasks at a time.',
  },
  SPEC_INVALID: {
    status: 422,
    means: 'The job spec is invalid.',
    hint: 'Nothing was submitted. The details list each error and where it is.',
  },
  PIPELINE_UNKNOWN: {
    status: 404,
    means: 'No pipeline has this name.',
    hint: 'The details list the known pipelines. Add others with the setting `pipelines` of the server or the engine.',
  },
  CURSOR_INVALID: {
    status: 400,
    means: 'This cursor was not created by this API.',
    hint: 'Start again without a cursor.',
  },
  CURSOR_GONE: {
    status: 410,
    means:
      'This cursor belongs to a history that no longer exists: the store was restored, copied, moved or failed over.',
    hint: 'Read a snapshot of the objects that you follow, then read the feed without a cursor.',
  },
  ...storeProblems,
  KEYS_WANTED: {
    status: 409,
    means: 'The server listens on an address that others can reach, so it requires API keys, and none exist.',
    hint: 'Create a key with `pawl key create --role admin --name NAME` on the same store, or listen on 127.0.0.1.',
  },
  PORT_TAKEN: {
    status: 409,
    means: 'The port is already in use.',
    hint: 'Stop the program that uses it, or choose another port with --port (0: any free port).',
  },
  PORT_REFUSED: {
    status: 409,
    means: 'The operating system does not allow the server to listen on this address and port.',
    hint: 'The host must be an address of this machine. Ports below 1024 require a privileged user.',
  },
  KEY_NOT_FOUND: { status: 404, means: 'No API key has this ID.', hint: 'List the keys with `pawl key list`.' },
  KEY_MISSING: {
    status: 401,
    means: 'The request has no valid API key.',
    hint: 'Send `Authorization: Bearer pawl_…`. An admin creates keys with `pawl key create`.',
  },
  KEY_REFUSED: {
    status: 403,
    means: 'This API key does not allow the operation.',
    hint: 'The details say what is missing. An admin can create another key.',
  },
  HOST_REFUSED: {
    status: 403,
    means: 'A server without API keys accepts requests only from programs on its own machine.',
    hint: 'Call it as localhost or 127.0.0.1 and not from a web page, or create a key.',
  },
  ROUTE_NOT_FOUND: {
    status: 404,
    means: 'No route matches this path.',
    hint: 'The pages `docs/api` and `openapi.json`, next to `v1`, list all routes.',
  },
  METHOD_REFUSED: {
    status: 405,
    means: 'This path does not support this HTTP method.',
    hint: 'The details list the methods that it supports.',
  },
  BODY_INVALID: {
    status: 400,
    means: 'The request body is not the expected JSON.',
    hint: 'The details give the reason.',
  },
  BODY_TOO_LARGE: {
    status: 413,
    means: 'The request body is larger than the limit.',
    hint: 'Send less at a time. The limit is a setting of the server.',
  },
  BODY_TYPE: {
    status: 415,
    means: 'The request body must be uncompressed application/json in UTF-8.',
    hint: 'Send `content-type: application/json`. A job spec may also be application/yaml.',
  },
  REQUEST_INVALID: {
    status: 400,
    means: 'The request is not valid HTTP.',
    hint: 'The details give the reason.',
  },
  REQUEST_SLOW: {
    status: 408,
    means: 'The request took too long to arrive.',
    hint: 'Send it again. The limit is a setting of the server.',
  },
  HEADERS_TOO_LARGE: {
    status: 431,
    means: 'The URL and the headers are larger than the limit.',
    hint: 'Together they may have at most 16 KiB.',
  },
  STREAMS_OF_KEY: {
    status: 429,
    means: 'This API key has reached its limit of open event streams.',
    hint: 'Close a stream, or follow several jobs with one stream. --max-streams-per-key sets the limit.',
  },
  STREAMS_FULL: {
    status: 503,
    means: 'The server has reached its limit of open event streams.',
    hint: 'Try again later, or read events page by page. --max-streams sets the limit.',
  },
  SPECS_WAIT: {
    status: 503,
    means: 'Too many long YAML specs are waiting to be parsed.',
    hint: 'Send the spec again in a moment, or as JSON, which is parsed faster.',
  },
  SERVER_CLOSING: {
    status: 503,
    means: 'The server is shutting down and did not process the request.',
    hint: 'Send it to another server, or send it again when this server is back.',
  },
  SERVER_BLOCKED: {
    status: 503,
    means: 'A long computation kept the server from answering requests.',
    hint: 'The server logs the computation as loop.blocked. It is ready again after 10 seconds without another one.',
  },
  SERVER_UNREACHABLE: {
    status: 503,
    means: 'The server cannot be reached, or did not answer in time.',
    hint: 'Check that it is running: `pawl up` starts one. --server or PAWL_SERVER sets its address.',
  },
  KUBERNETES_CLIENT_MISSING: {
    status: 409,
    means: 'Running stages in Kubernetes requires its client, which is not installed.',
    hint: 'Install it next to Pawl: npm install @kubernetes/client-node.',
  },
  KUBERNETES_UNREACHABLE: {
    status: 503,
    means: 'The Kubernetes API cannot be reached, or returned an unexpected response.',
    hint: 'Pawl tries again, and until then assumes nothing about the state of the pods.',
  },
  KUBERNETES_REFUSED: {
    status: 409,
    means: 'Kubernetes rejected the request.',
    hint: 'The details quote its message. Check the Role (deploy/stages/rbac.yaml), the quota and the manifest.',
  },
  POD_NOT_ALLOWED: {
    status: 403,
    means: 'The server does not allow stages to use this image, Secret, service account or namespace.',
    hint: 'Use one that the details list as allowed, or ask an administrator to add it to the setting that they name.',
  },
  COMMAND_INVALID: { status: 400, means: 'Invalid command.', hint: 'Run it with --help to see its usage.' },
  FILE_INVALID: { status: 400, means: 'This file cannot be used.', hint: 'The details give the reason.' },
  TRANSACTION_UNKNOWN: {
    status: 400,
    means: 'The value of the option tx is not a transaction that Pawl can use.',
    hint: 'Pass the transaction object of your library as it is. The details list the libraries; docs/transactions.md has an example of each.',
  },
  TRANSACTION_NOT_OPEN: {
    status: 409,
    means: 'The value of the option tx is not an open transaction.',
    hint: 'Nothing was changed. Begin a transaction, pass its object, and wait for the call before you commit. See docs/transactions.md.',
  },
  TRANSACTION_ELSEWHERE: {
    status: 409,
    means: "The transaction is not in the engine's database.",
    hint: 'Connect the engine and your library to the same PostgreSQL database. On the embedded store, use engine.transaction.',
  },
  TRANSACTION_REMOTE: {
    status: 409,
    means: 'A transaction cannot be used with an engine in another process.',
    hint: 'Open the engine in this process, on the same database; or return the output, and make the work idempotent.',
  },
  TRANSACTION_FAILED: {
    status: 409,
    means: 'A statement of the transaction failed, so the database rolls everything back.',
    hint: 'Nothing was changed. Let the error of the statement end the transaction, or run the statement in a savepoint.',
  },
  TRANSACTION_OPEN: {
    status: 409,
    means: 'A call outside the open transaction would wait for it forever.',
    hint: 'The embedded store has a single connection. Pass the transaction handle to every call made inside it.',
  },
  ...fileProblems,
} as const satisfies Record<string, { status: number; means: string; hint: string }>

/** The code of a problem, such as `TASK_NOT_FOUND`. Codes are stable; messages may change. */
export type ProblemCode = keyof typeof problems
