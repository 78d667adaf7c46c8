import type { Schema } from '../../schema/check.ts'
import { type Dialect, type DialectRoute, someBody } from '../dialect.ts'
import { capacity, capacitySchema } from './capacity.ts'
import { badSchema, goodSchema, refuse, schemaOf } from './envelope.ts'
import { invoke } from './invoke.ts'
import { deleteJob, listJobs, resumeJob, stateOrJob, stopJob } from './jobs.ts'
import { keys, limits } from './limits.ts'
import { serviceRoutes } from './service-routes.ts'
import { words } from './words.ts'
import { workInfoSchema } from './work-info.ts'

const jobs: Schema = { type: 'array', items: workInfoSchema }
const stop: Omit<DialectRoute, 'method'> = {
  path: '/api/jobs/{id}/stop',
  needs: 'operate',
  says: 'Cancel a job that is not terminal.',
  answers: goodSchema({ const: 'Job stopped' }),
  handle: stopJob,
}

export const marie: Dialect = {
  name: 'marie',
  of: 'Marie’s scheduler',
  words,
  routes: [
    {
      method: 'POST',
      path: '/api/v1/invoke',
      needs: 'produce',
      says: 'Submit a job.',
      takes: someBody,
      answers: schemaOf({
        status: { const: 'OK' },
        result: workInfoSchema,
        header: schemaOf({}),
        parameters: schemaOf({
          status: { const: 'submitted' },
          msg: { type: 'string' },
          job_id: { type: 'string' },
        }),
        data: { type: 'null' },
      }),
      handle: invoke,
    },
    {
      method: 'GET',
      path: '/api/jobs',
      needs: 'read',
      says: 'Jobs, newest first; `?state=`, `?dag_id=`, `?queue=` and `?limit=` narrow it down.',
      query: ['state', 'dag_id', 'queue', 'limit'],
      answers: goodSchema(jobs),
      handle: listJobs,
    },
    {
      method: 'GET',
      path: '/api/jobs/{id}',
      needs: 'read',
      says: 'The jobs in a state, or one job.',
      query: ['dag_id', 'queue', 'limit'],
      answers: goodSchema({ anyOf: [jobs, workInfoSchema] }),
      handle: stateOrJob,
    },
    { ...stop, method: 'GET' },
    { ...stop, method: 'POST' },
    {
      method: 'POST',
      path: '/api/jobs/{id}/resume',
      needs: 'operate',
      says: 'Resume a job that was cancelled.',
      answers: goodSchema({ const: 'Job resumed' }),
      handle: resumeJob,
    },
    {
      method: 'DELETE',
      path: '/api/jobs/{id}',
      needs: 'operate',
      says: 'Delete the record of a job that is terminal.',
      answers: goodSchema({ const: 'Job deleted' }),
      handle: deleteJob,
    },
    {
      method: 'GET',
      path: '/api/capacity',
      needs: 'read',
      says: 'The slots of each queue, and how many are used.',
      answers: goodSchema(capacitySchema),
      handle: capacity,
    },
    ...serviceRoutes,
  ],
  refuse,
  faults: badSchema,
  keys,
  limits,
}
