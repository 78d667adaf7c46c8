/**
 * The problems that each operation can answer with. Most follow from its route and its request; those that only the
 * engine can find are listed per operation. The OpenAPI document shows them per status.
 */
import type { ProblemCode } from '../kernel/problem.ts'
import { requests } from './requests.ts'
import { hasBody, type Operation, type Route, routes, takesKey } from './routes.ts'

type Codes = readonly ProblemCode[]

/** Any request to any route that needs the store. */
export const commonProblems: Codes = [
  'REQUEST_INVALID',
  'OPTION_UNKNOWN',
  'OPTION_INVALID',
  'BODY_TYPE',
  'KEY_MISSING',
  'KEY_REFUSED',
  'HOST_REFUSED',
  'REQUEST_SLOW',
  'HEADERS_TOO_LARGE',
  'SERVER_CLOSING',
  'SCHEMA_NEWER',
  'STORE_UNAVAILABLE',
  'STORE_BUSY',
  'STORE_FULL',
  'STORE_READ_ONLY',
  'STORE_CROWDED',
  'STORE_REFUSED',
]

const withBody: Codes = ['BODY_INVALID', 'BODY_TOO_LARGE', 'PAYLOAD_INVALID']

const notFoundUnder: Readonly<Record<string, ProblemCode>> = {
  '/v1/jobs/{id}': 'JOB_NOT_FOUND',
  '/v1/stages/{id}': 'STAGE_NOT_FOUND',
  '/v1/tasks/{id}': 'TASK_NOT_FOUND',
  '/v1/dead-letters/redrives/{id}': 'REDRIVE_NOT_FOUND',
  '/v1/keys/{id}': 'KEY_NOT_FOUND',
}

/** Problems with parameters of a query. */
const parameterProblems: Readonly<Record<string, ProblemCode>> = {
  cursor: 'CURSOR_INVALID',
  jobId: 'JOB_NOT_FOUND',
  stageId: 'STAGE_NOT_FOUND',
}

const newPayloads: Codes = ['PAYLOAD_REFUSED', 'PAYLOAD_TOO_LARGE', 'TOO_MANY_TASKS']
const newStages: Codes = ['SPEC_INVALID', 'SEALED', 'MOVE_REFUSED', ...newPayloads]
/** Stages with files run programs, which may be in Kubernetes. */
const files: Codes = ['FILES_OUTSIDE', 'INPUTS_INVALID', 'URI_INVALID', 'POD_NOT_ALLOWED']
const nextRound: Codes = ['MOVE_REFUSED', 'JOB_COMPENSATED', 'OUTPUT_LOST', 'DEDUPE_CONFLICT']
const metadata: Codes = ['PAYLOAD_TOO_LARGE']
const report: Codes = ['LEASE_LOST', 'TASK_BUSY', 'MOVE_REFUSED', 'PAYLOAD_TOO_LARGE']
const move: Codes = ['MOVE_REFUSED']

const found: Partial<Readonly<Record<Operation, Codes>>> = {
  submit: ['PIPELINE_UNKNOWN', 'SUBMIT_CUT_OFF', 'SPECS_WAIT', 'ID_TAKEN', 'JOB_NOT_FOUND', ...newStages, ...files],
  patchJob: metadata,
  deleteJob: move,
  startJob: move,
  pauseJob: move,
  resumeJob: nextRound,
  cancelJob: move,
  retryJob: [...nextRound, 'NOTHING_TO_REDO'],
  sealJob: move,
  addStages: [...newStages, ...files],
  patchStage: metadata,
  approve: move,
  reject: move,
  hold: move,
  cancelStage: move,
  retryStage: nextRound,
  sealStage: move,
  addTasks: ['SEALED', 'MOVE_REFUSED', ...newPayloads, ...files],
  enqueueMany: ['ID_TAKEN', ...newPayloads, ...files],
  lineage: ['URI_INVALID'],
  patchTask: metadata,
  cancel: ['MOVE_REFUSED', 'LEASE_LOST'],
  resume: nextRound,
  retry: nextRound,
  deadLetter: ['MOVE_REFUSED', 'LEASE_LOST'],
  deleteTask: ['MOVE_REFUSED', 'TASK_OF_JOB'],
  redrive: ['TASK_NOT_FOUND', 'PAYLOAD_REFUSED', 'PAYLOAD_TOO_LARGE', ...files],
  start: report,
  heartbeat: report,
  succeed: [...report, 'FILES_UNFINISHED', 'SPAWN_REFUSED', 'ARTIFACT_CONFLICT', 'ARTIFACT_CONTESTED'],
  fail: report,
  skip: report,
  release: report,
  cancelled: report,
  reportArtifacts: [
    ...report,
    'ARTIFACT_UNKNOWN',
    'ARTIFACT_OUTSIDE',
    'ARTIFACTS_DIFFER',
    'ARTIFACT_CONFLICT',
    'ARTIFACT_CONTESTED',
    'URI_INVALID',
    'NAME_REFUSED',
  ],
  loseWorker: ['WORKER_AMBIGUOUS'],
  taskType: ['TASK_TYPE_UNKNOWN'],
  events: ['CURSOR_GONE', 'STREAMS_FULL', 'STREAMS_OF_KEY'],
}

/** A change to a stage or a task locks its job, which may have been deleted in the meantime. */
function notFoundIn(route: Route): Codes {
  const named = Object.entries(notFoundUnder).filter(
    ([path]) => route.path === path || route.path.startsWith(`${path}/`),
  )
  const isPartOfJob = /^\/v1\/(stages|tasks)\/\{id\}/.test(route.path)
  return [...named.map(([, code]) => code), ...(isPartOfJob && hasBody(route) ? (['JOB_NOT_FOUND'] as const) : [])]
}

/** Without duplicates, in no particular order. */
export function problemsOf(operation: Operation): Codes {
  const route: Route = routes[operation]
  return [
    ...new Set([
      ...commonProblems,
      ...(hasBody(route) ? withBody : []),
      ...(takesKey(operation) ? (['IDEMPOTENCY_MISMATCH'] as const) : []),
      ...Object.keys(requests[operation].query ?? {}).flatMap(name => parameterProblems[name] ?? []),
      ...notFoundIn(route),
      ...(found[operation] ?? []),
    ]),
  ]
}
