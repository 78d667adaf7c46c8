import { list, text } from '../../protocol/shapes.ts'
import { closedObject, type Dialect, type DialectRoute, someBody } from '../dialect.ts'
import { capacity, capacitySchema } from './capacity.ts'
import { badSchema, goodSchema, refuse } from './envelope.ts'
import { invoke } from './invoke.ts'
import { deleteJob, listJobs, resumeJob, stateOrJob, stopJob } from './jobs.ts'
import { keys, limits } from './limits.ts'
import { serviceRoutes } from './service-routes.ts'
import { words } from './words.ts'
import { workInfoSchema } from './work-info.ts'

const jobs = list(workInfoSchema)
const stop: Omit<DialectRoute, 'method'> = {
  path: '/api/jobs/{id}/stop',
  needs: 'operate',
  summary: 'Cancel a job that is not terminal.',
  answers: goodSchema({ const: 'Job stopped' }),
  handle: stopJob,
}

export const marie: Dialect = {
  name: 'marie',
  system: 'Marie’s scheduler',
  words,
  routes: [
    {
      method: 'POST',
      path: '/api/v1/invoke',
      needs: 'produce',
      summary: 'Submit a job.',
      takes: someBody,
      answers: closedObject({
        status: { const: 'OK' },
        result: workInfoSchema,
        header: closedObject({}),
        parameters: closedObject({
          status: { const: 'submitted' },
          msg: text,
          job_id: text,
        }),
        data: { type: 'null' },
      }),
      handle: invoke,
    },
    {
      method: 'GET',
      path: '/api/jobs',
      needs: 'read',
      summary: 'List jobs, newest first, filtered by `?state=`, `?dag_id=`, `?queue=` and `?limit=`.',
      query: ['state', 'dag_id', 'queue', 'limit'],
      answers: goodSchema(jobs),
      handle: listJobs,
    },
    {
      method: 'GET',
      path: '/api/jobs/{id}',
      needs: 'read',
      summary: 'List the jobs in a state, or get one job.',
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
      summary: 'Resume a cancelled job.',
      answers: goodSchema({ const: 'Job resumed' }),
      handle: resumeJob,
    },
    {
      method: 'DELETE',
      path: '/api/jobs/{id}',
      needs: 'operate',
      summary: 'Delete the record of a terminal job.',
      answers: goodSchema({ const: 'Job deleted' }),
      handle: deleteJob,
    },
    {
      method: 'GET',
      path: '/api/capacity',
      needs: 'read',
      summary: 'List the slots of each queue, and how many are used.',
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
