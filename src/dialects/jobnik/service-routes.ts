/** Routes for operators: probes, documentation and metrics. */
import { maxLabels, otherLabel } from '../../kernel/metrics.ts'
import { object, text, view } from '../../protocol/shapes.ts'
import { type DialectRoute, good, route } from '../dialect.ts'
import type { DialectEngine } from '../dialect-engine.ts'
import { docsPage, openApiOf } from '../docs.ts'
import { jobRoutes } from './job-routes.ts'
import { stageRoutes } from './stage-routes.ts'
import { taskRoutes } from './task-routes.ts'
import { faultSchema } from './views.ts'
import { bandStarts, jobWord, jobWords, priorityFor, stageWord, stageWords, taskWord, taskWords } from './words.ts'

const documented = { system: 'Jobnik', routes: [...jobRoutes, ...stageRoutes, ...taskRoutes], faults: faultSchema }

export const serviceRoutes: readonly DialectRoute[] = [
  route('GET /liveness', null, {
    summary: 'For probes: 200 while the store responds, else 503.',
    answers: view<{ status: string }>({ status: { const: 'ok' } }),
    async handle({ engine }) {
      await engine.ready()
      return good({ status: 'ok' })
    },
  }),
  route('GET /docs/api', null, {
    summary: 'These routes as a page.',
    mediaType: 'text/html',
    answers: text,
    handle: async ({ root }) => docsPage(documented, `${root}/docs/api.json`),
  }),
  route('GET /docs/api.json', null, {
    summary: 'These routes as an OpenAPI document.',
    answers: object,
    handle: async ({ root }) => good(openApiOf(documented, root)),
  }),
  route('GET /service-metrics', 'read', {
    summary: 'Metrics for Prometheus: jobs, stages and tasks by status, type and priority.',
    answers: text,
    async handle({ engine }) {
      const body = serviceMetrics(
        await engine.countsByState({ most: maxLabels, others: otherLabel, priorities: bandStarts }),
      )
      return { status: 200, headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }, body }
    },
  }),
]

type Counts = Awaited<ReturnType<DialectEngine['countsByState']>>
type Count = readonly [labels: Readonly<Record<string, string>>, count: number]

/** Jobnik's metrics in Prometheus' text format. As in the original, a status without items counts 0. */
function serviceMetrics({ jobs, stages, tasks: all }: Counts): string {
  const tasks = all.filter(({ staged }) => staged)
  const noJobs = jobWords.map((job_status): Count => [{ job_status }, 0])
  const noStages = typesIn(stages).flatMap(stage_type =>
    stageWords.map((stage_status): Count => [{ stage_status, stage_type }, 0]),
  )
  const noTasks = typesIn(tasks).flatMap(stage_type =>
    taskWords.map((task_status): Count => [{ task_status, stage_type }, 0]),
  )
  return [
    gauge('jobnik_tasks_by_status', 'Current number of tasks by status', [
      ...noTasks,
      ...tasks.map(({ queue, state, count }): Count => [{ task_status: taskWord(state), stage_type: queue }, count]),
    ]),
    gauge('jobnik_stages_by_status', 'Current number of stages by status', [
      ...noStages,
      ...stages.map(({ count, queue, gated, ...stage }): Count => {
        const stage_status = stageWord({ ...stage, gate: gated ? {} : null })
        return [{ stage_status, stage_type: queue }, count]
      }),
    ]),
    gauge('jobnik_jobs_by_status', 'Current number of jobs by status', [
      ...noJobs,
      ...jobs.map(({ count, ...job }): Count => [{ job_status: jobWord(job) }, count]),
    ]),
    gauge(
      'jobnik_tasks_count',
      'Current number of tasks by type of stage, priority and status',
      tasks.map(({ queue, priority, state, count }): Count => {
        return [{ stage_type: queue, priority: priorityFor(priority), task_status: taskWord(state) }, count]
      }),
    ),
  ].join('')
}

const typesIn = (rows: readonly { readonly queue: string }[]) => [...new Set(rows.map(({ queue }) => queue))]

/** Counts with the same labels are added up. */
function gauge(name: string, help: string, counts: readonly Count[]): string {
  const sums = new Map<string, number>()
  for (const [labels, count] of counts) {
    const pairs = Object.entries(labels).map(([label, value]) => `${label}="${escaped(value)}"`)
    const series = `${name}{${pairs.join(',')}}`
    sums.set(series, (sums.get(series) ?? 0) + count)
  }
  const lines = [...sums].map(([series, sum]) => `${series} ${sum}`)
  return [`# HELP ${name} ${help}`, `# TYPE ${name} gauge`, ...lines, ''].join('\n')
}

const escaped = (value: string) => value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
