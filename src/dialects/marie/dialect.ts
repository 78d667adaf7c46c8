import { text } from '../../protocol/shapes.ts'
import { closedObject, type Dialect, route, someBody } from '../dialect.ts'
import { badSchema, refuse } from './envelope.ts'
import { invoke } from './invoke.ts'
import { jobRoutes, workInfoSchema } from './jobs.ts'
import { serviceRoutes } from './service-routes.ts'
import { words } from './words.ts'

export const marie: Dialect = {
  name: 'marie',
  system: 'Marie’s scheduler',
  words,
  routes: [
    route('POST /api/v1/invoke', 'produce', {
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
    }),
    ...jobRoutes,
    ...serviceRoutes,
  ],
  refuse,
  faults: badSchema,
}
