/**
 * What can be asked over HTTP, as data: the server binds it, the client calls by it, the OpenAPI document and the
 * tests of roles are read off it. A route is named for the operation of `PawlApi` that it stands for.
 */

import type { Permission } from '../kernel/role.ts'
import type { PawlApi } from './api.ts'

/**
 * What an operation is given, in order. `id`: from the path. `query`, `body`: as they came. `options`: the body and
 * the call as one object. `call`: who asks, and the idempotency key. `epoch`, `said`: that field of the body, and the
 * rest of it.
 */
export type Given = 'id' | 'query' | 'body' | 'options' | 'call' | 'epoch' | 'said'

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** A parameter other than `id` is a field of the body. */
  readonly path: string
  readonly needs: Permission
  readonly takes: readonly Given[]
  readonly status: 200 | 201 | 204
  readonly says: string
}

/** Whether a request has one. */
export const hasBody = ({ takes }: Route) => takes.some(given => ['body', 'options', 'epoch', 'said'].includes(given))

/** Operations whose bodies hold many things. All others are about one task, stage, job, type or key. */
export const bulkOperations: ReadonlySet<string> = new Set([
  'submit',
  'addStages',
  'addTasks',
  'enqueueMany',
  'sync',
  'reportArtifacts',
])

/** What needs no route: it is made of others on the client's side. */
type Local = 'enqueue' | 'register'

const get = (path: string, takes: readonly Given[], says: string, needs: Permission = 'read'): Route => ({
  method: 'GET',
  path,
  needs,
  takes,
  status: 200,
  says,
})

const post = (path: string, needs: Permission, takes: readonly Given[], says: string): Route => ({
  method: 'POST',
  path,
  needs,
  takes,
  status: 200,
  says,
})

const report = (path: string, says: string): Route => post(path, 'work', ['id', 'epoch', 'said'], says)

const patch = (path: string, says: string): Route => ({
  ...post(path, 'operate', ['id', 'body', 'call'], says),
  method: 'PATCH',
})

const operate = (path: string, says: string): Route => post(path, 'operate', ['id', 'options'], says)

export const routes = {
  submit: { ...post('/v1/jobs', 'produce', ['body', 'call'], 'Submit a job: all of it or nothing.'), status: 201 },
  jobs: get('/v1/jobs', ['query'], 'Jobs, newest first.'),
  job: get('/v1/jobs/{id}', ['id'], 'A job, its stages and its progress.'),
  patchJob: patch('/v1/jobs/{id}', 'Change the priority of a job, or its metadata by a JSON merge patch.'),
  deleteJob: {
    ...operate('/v1/jobs/{id}', 'Delete a job that has ended; one that is stopping is made to end first.'),
    method: 'DELETE',
    status: 204,
  },
  startJob: operate('/v1/jobs/{id}/start', 'Start a job that was submitted with `start: false`.'),
  pauseJob: operate('/v1/jobs/{id}/pause', 'Claim nothing more of a job; what is in hand may finish.'),
  resumeJob: operate('/v1/jobs/{id}/resume', 'Let a paused job go on, or open the next round of one that ended badly.'),
  cancelJob: operate('/v1/jobs/{id}/cancel', 'Call a job off.'),
  retryJob: operate('/v1/jobs/{id}/retry', 'Do again what did not succeed, in place or as a clone.'),
  sealJob: post('/v1/jobs/{id}/seal', 'produce', ['id', 'options'], 'Say that no more stages will come.'),
  addStages: post('/v1/jobs/{id}/stages', 'produce', ['id', 'body', 'call'], 'Add stages to an open job.'),
  jobEvents: get('/v1/jobs/{id}/events', ['id', 'query'], 'What happened to a job, oldest first.'),
  jobStages: get('/v1/jobs/{id}/stages', ['id'], 'The stages of a job, in their order.'),
  jobArtifacts: get('/v1/jobs/{id}/artifacts', ['id', 'query'], 'The files that a job has put out, oldest first.'),
  jobTasks: get('/v1/jobs/{id}/tasks', ['id', 'query'], 'The tasks of a job, newest first.'),

  timeline: get(
    '/v1/jobs/{id}/timeline',
    ['id', 'query'],
    'When its stages, and some of its tasks, were in which state.',
  ),
  troubles: get('/v1/troubles', ['query'], 'Tasks that ended badly, by what is alike, most of a kind first.'),

  stages: get('/v1/stages', ['query'], 'Stages in some states, over all jobs.'),
  stage: get('/v1/stages/{id}', ['id'], 'A stage.'),
  stageCounts: get('/v1/stages/{id}/counts', ['id'], 'How many tasks of a stage are in each state.'),
  patchStage: patch('/v1/stages/{id}', 'Change the metadata of a stage by a JSON merge patch.'),
  approve: operate('/v1/stages/{id}/approve', 'Approve a stage that waits.'),
  reject: operate('/v1/stages/{id}/reject', 'Refuse a stage that waits.'),
  hold: operate('/v1/stages/{id}/hold', 'Hold a stage until it is approved.'),
  cancelStage: operate('/v1/stages/{id}/cancel', 'Call a stage off.'),
  retryStage: operate('/v1/stages/{id}/retry', 'Do again what did not succeed in a stage.'),
  sealStage: post('/v1/stages/{id}/seal', 'produce', ['id', 'options'], 'Say that no more tasks will come.'),
  addTasks: post('/v1/stages/{id}/tasks', 'produce', ['id', 'body', 'call'], 'Add tasks to an open stage.'),
  stageEvents: get('/v1/stages/{id}/events', ['id', 'query'], 'What happened to a stage, oldest first.'),
  stageArtifacts: get('/v1/stages/{id}/artifacts', ['id', 'query'], 'The files of a stage, oldest first.'),
  stageFiles: get(
    '/v1/stages/{id}/files',
    ['id', 'query'],
    'The files that a stage has put in their places, by name; for whoever works on them.',
    'work',
  ),
  stageTasks: get('/v1/stages/{id}/tasks', ['id', 'query'], 'The tasks of a stage, newest first.'),

  enqueueMany: { ...post('/v1/tasks', 'produce', ['body', 'call'], 'Queue a task, or up to 10,000.'), status: 201 },
  tasks: get('/v1/tasks', ['query'], 'Tasks, newest first.'),
  task: get('/v1/tasks/{id}', ['id'], 'A task.'),
  taskEvents: get('/v1/tasks/{id}/events', ['id', 'query'], 'What happened to a task, oldest first.'),
  attempts: get('/v1/tasks/{id}/attempts', ['id'], 'What happened under each lease of a task.'),
  logs: get(
    '/v1/tasks/{id}/logs',
    ['id', 'query'],
    'What the handler of a task has logged. Asked with the cursor `behind`, what it has logged since.',
  ),
  taskArtifacts: get('/v1/tasks/{id}/artifacts', ['id', 'query'], 'The files of a task, oldest first.'),
  lineage: get('/v1/lineage', ['query'], 'Which inputs made a file, and what was made of it.'),
  patchTask: patch('/v1/tasks/{id}', 'Change the metadata of a task by a JSON merge patch.'),
  cancel: operate('/v1/tasks/{id}/cancel', 'Call a task off.'),
  resume: operate('/v1/tasks/{id}/resume', 'Open the next round of a task that was cancelled.'),
  retry: operate('/v1/tasks/{id}/retry', 'Open the next round of a task that failed or expired.'),
  deadLetter: operate('/v1/tasks/{id}/dead-letter', 'Set a task aside for people.'),
  deleteTask: {
    ...operate('/v1/tasks/{id}', 'Delete a task that has ended and stands alone.'),
    method: 'DELETE',
    status: 204,
  },
  deadLetters: get('/v1/dead-letters', ['query'], 'Tasks that were set aside, newest first.'),
  redriveProgress: get('/v1/dead-letters/redrives/{id}', ['id'], 'How far a redrive has come.'),
  redrive: post('/v1/dead-letters/redrive', 'operate', ['body', 'call'], 'Give dead letters another round.'),

  sync: post('/v1/workers/{worker}/sync', 'work', ['body'], 'The worker protocol in one round trip.'),
  claims: post('/v1/claims', 'work', ['body', 'call'], 'Claim a task, or a few; for a worker that does one at a time.'),
  start: post('/v1/tasks/{id}/start', 'work', ['id', 'epoch'], 'Say that a task has begun.'),
  heartbeat: report('/v1/tasks/{id}/heartbeat', 'Renew a lease, and hear whether the task is to stop.'),
  succeed: report('/v1/tasks/{id}/succeed', 'Say that a task is done.'),
  fail: report('/v1/tasks/{id}/fail', 'Say that an attempt failed.'),
  skip: report('/v1/tasks/{id}/skip', 'Say that there was nothing to do.'),
  release: report('/v1/tasks/{id}/release', 'Give a task back; it is not charged.'),
  cancelled: report('/v1/tasks/{id}/cancelled', 'Say that a task has stopped, as it was asked to.'),
  reportArtifacts: report('/v1/tasks/{id}/artifacts', 'Say what became of files that a task puts out.'),
  workers: get('/v1/workers', ['query'], 'Workers that were heard of lately, by name.'),
  loseWorker: operate(
    '/v1/workers/{id}/lost',
    'Declare a worker dead: its leases end at once. Its name is that of the worker, or of its pod.',
  ),

  putTaskType: {
    ...post('/v1/task-types/{id}', 'teach', ['id', 'body'], 'Say how tasks of a type are leased, retried and kept.'),
    method: 'PUT',
    status: 204,
  },
  taskTypes: get('/v1/task-types', ['query'], 'The types that something was said of, by name.'),
  taskType: get('/v1/task-types/{id}', ['id'], 'What was said of a type.'),
  stats: get('/v1/stats', ['query'], 'How often and how fast tasks move, by type and over time.'),
  queues: get('/v1/queues', ['query'], 'How deep each queue is, by name.'),
  doctor: get('/v1/doctor', [], 'Broken rules, pinned snapshots, bloat, clock skew, schema drift.'),
  events: get(
    '/v1/events',
    ['query'],
    'The feed of all events, from its start, a cursor or its `latest`; as a stream if text/event-stream is asked for.',
  ),

  createKey: { ...post('/v1/keys', 'administer', ['body', 'call'], 'Make a key.'), status: 201 },
  keys: get('/v1/keys', [], 'Keys, without their secrets.', 'administer'),
  revokeKey: post('/v1/keys/{id}/revoke', 'administer', ['id', 'options'], 'End a key.'),
} as const satisfies Record<Exclude<keyof PawlApi, Local>, Route>

export type Operation = keyof typeof routes

/**
 * Whether a request may carry an Idempotency-Key. What a worker reports needs none: its epoch tells that it is sent
 * again. Nor may a key be made under one, for an answer that is kept would keep the secret with it.
 */
export function takesKey(operation: Operation): boolean {
  const { takes }: Route = routes[operation]
  return operation !== 'createKey' && takes.some(given => given === 'call' || given === 'options')
}
