import type { Dialect } from '../dialect.ts'
import { jobRoutes } from './job-routes.ts'
import { keys, limits } from './limits.ts'
import { refuse } from './refusals.ts'
import { serviceRoutes } from './service-routes.ts'
import { faults } from './shapes.ts'
import { stageRoutes } from './stage-routes.ts'
import { taskRoutes } from './task-routes.ts'
import { words } from './words.ts'

export const jobnik: Dialect = {
  name: 'jobnik',
  of: 'Jobnik',
  words,
  routes: [...jobRoutes, ...stageRoutes, ...taskRoutes, ...serviceRoutes],
  refuse,
  faults,
  keys,
  limits,
}
