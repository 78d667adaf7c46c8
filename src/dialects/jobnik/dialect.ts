import type { Dialect } from '../dialect.ts'
import { jobRoutes } from './job-routes.ts'
import { keys, limits } from './limits.ts'
import { refuse } from './refusals.ts'
import { serviceRoutes } from './service-routes.ts'
import { stageRoutes } from './stage-routes.ts'
import { taskRoutes } from './task-routes.ts'
import { faultSchema } from './views.ts'
import { words } from './words.ts'

export const jobnik: Dialect = {
  name: 'jobnik',
  system: 'Jobnik',
  words,
  routes: [...jobRoutes, ...stageRoutes, ...taskRoutes, ...serviceRoutes],
  refuse,
  faults: faultSchema,
  keys,
  limits,
}
