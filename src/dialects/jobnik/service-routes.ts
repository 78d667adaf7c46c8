/** Routes for those who run the service: probes, documentation and figures. */
import { maxLabels, otherLabel } from '../../kernel/metric-labels.ts'
import { type DialectRoute, good } from '../dialect.ts'
import { docsPage, openApiOf } from '../docs.ts'
import { jobRoutes } from './job-routes.ts'
import { bandStarts } from './priorities.ts'
import { serviceMetrics } from './service-metrics.ts'
import * as shapes from './shapes.ts'
import { stageRoutes } from './stage-routes.ts'
import { taskRoutes } from './task-routes.ts'

const documented = { of: 'Jobnik', routes: [...jobRoutes, ...stageRoutes, ...taskRoutes], faults: shapes.faults }

export const serviceRoutes: readonly DialectRoute[] = [
  {
    method: 'GET',
    path: '/liveness',
    needs: null,
    says: 'For probes: 200 while the store answers, else 503.',
    answers: shapes.alive,
    async handle({ engine }) {
      await engine.ready()
      return good({ status: 'ok' })
    },
  },
  {
    method: 'GET',
    path: '/docs/api',
    needs: null,
    says: 'These routes, as a page.',
    mediaType: 'text/html',
    answers: shapes.page,
    handle: async ({ root }) => docsPage(documented, `${root}/docs/api.json`),
  },
  {
    method: 'GET',
    path: '/docs/api.json',
    needs: null,
    says: 'These routes, as an OpenAPI document.',
    answers: shapes.anyObject,
    handle: async ({ root }) => good(openApiOf(documented, root)),
  },
  {
    method: 'GET',
    path: '/service-metrics',
    needs: 'read',
    says: 'Jobs, stages and tasks by status, type and priority, for Prometheus.',
    answers: shapes.page,
    async handle({ engine }) {
      const body = serviceMetrics(
        await engine.countsByState({ most: maxLabels, others: otherLabel, priorities: bandStarts }),
      )
      return { status: 200, headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }, body }
    },
  },
]
