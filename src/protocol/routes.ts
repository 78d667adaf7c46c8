/**
 * What can be asked over HTTP, as data: the server binds it, the client calls by it, the OpenAPI document and the
 * tests of roles are read off it. A route is named for the operation of `PawlApi` that it stands for.
 */

import type { Permission } from '../kernel/role.ts'
import type { PawlApi } from './api.ts'

/**
 * What an operation is given, in order. `id`: from the path. `query`, `body`: as they came. `options`: the body and
 * the call as one object. `call`: who asks, and the idempotency key.
 */
export type Given = 'id' | 'query' | 'body' | 'options' | 'call'

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** A parameter other than `id` is a field of the body. */
  readonly path: string
  readonly needs: Permission
  readonly takes: readonly Given[]
  readonly status: 200 | 201 | 204
  readonly says: string
}

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

const operate = (path: string, says: string): Route => post(path, 'operate', ['id', 'options'], says)

export const routes = {
  submit: { ...post('/v1/jobs', 'produce', ['body', 'call'], 'Submit a job: all of it or nothing.'), status: 201 },
  jobs: get('/v1/jobs', ['query'], 'Jobs, newest first.'),
  job: get('/v1/jobs/{id}', ['id'], 'A job, its stages and its progress.'),
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
  jobTasks: get('/v1/jobs/{id}/tasks', ['id', 'query'], 'The tasks of a job, newest first.'),

  stages: get('/v1/stages', ['query'], 'Stages in some states, over all jobs.'),
  stage: get('/v1/stages/{id}', ['id'], 'A stage.'),
  approve: operate('/v1/stages/{id}/approve', 'Approve a stage that waits.'),
  reject: operate('/v1/stages/{id}/reject', 'Refuse a stage that waits.'),
  hold: operate('/v1/stages/{id}/hold', 'Hold a stage until it is approved.'),
  cancelStage: operate('/v1/stages/{id}/cancel', 'Call a stage off.'),
  retryStage: operate('/v1/stages/{id}/retry', 'Do again what did not succeed in a stage.'),
  sealStage: post('/v1/stages/{id}/seal', 'produce', ['id', 'options'], 'Say that no more tasks will come.'),
  addTasks: post('/v1/stages/{id}/tasks', 'produce', ['id', 'body', 'call'], 'Add tasks to an open stage.'),
  stageEvents: get('/v1/stages/{id}/events', ['id', 'query'], 'What happened to a stage, oldest first.'),
  stageTasks: get('/v1/stages/{id}/tasks', ['id', 'query'], 'The tasks of a stage, newest first.'),

  enqueueMany: { ...post('/v1/tasks', 'produce', ['body', 'call'], 'Queue a task, or up to 10,000.'), status: 201 },
  tasks: get('/v1/tasks', ['query'], 'Tasks, newest first.'),
  task: get('/v1/tasks/{id}', ['id'], 'A task.'),
  taskEvents: get('/v1/tasks/{id}/events', ['id', 'query'], 'What happened to a task, oldest first.'),
  attempts: get('/v1/tasks/{id}/attempts', ['id'], 'What happened under each lease of a task.'),
  cancel: operate('/v1/tasks/{id}/cancel', 'Call a task off.'),
  resume: operate('/v1/tasks/{id}/resume', 'Open the next round of a task that was cancelled.'),
  retry: operate('/v1/tasks/{id}/retry', 'Open the next round of a task that failed or expired.'),
  deadLetter: operate('/v1/tasks/{id}/dead-letter', 'Set a task aside for people.'),
  redrive: post('/v1/dead-letters/redrive', 'operate', ['body', 'call'], 'Give dead letters another round.'),

  sync: post('/v1/workers/{worker}/sync', 'work', ['body'], 'The worker protocol in one round trip.'),
  workers: get('/v1/workers', ['query'], 'Workers that were heard of lately.'),

  putTaskType: {
    ...post('/v1/task-types/{id}', 'teach', ['id', 'body'], 'Say how tasks of a type are leased, retried and kept.'),
    method: 'PUT',
    status: 204,
  },
  taskType: get('/v1/task-types/{id}', ['id'], 'What was said of a type.'),
  queues: get('/v1/queues', [], 'How deep each queue is.'),
  doctor: get('/v1/doctor', [], 'Broken rules, pinned snapshots, bloat, clock skew, schema drift.'),
  events: get('/v1/events', ['query'], 'The feed of all events; as a stream if text/event-stream is asked for.'),

  createKey: { ...post('/v1/keys', 'administer', ['body', 'call'], 'Make a key.'), status: 201 },
  keys: get('/v1/keys', [], 'Keys, without their secrets.', 'administer'),
  revokeKey: post('/v1/keys/{id}/revoke', 'administer', ['id', 'options'], 'End a key.'),
} as const satisfies Record<Exclude<keyof PawlApi, Local>, Route>

export type Operation = keyof typeof routes
