/** Jobnik's own figures, in the text format of Prometheus. As there, a status that nothing has is told as 0. */
import type { AskersEngine } from '../askers-engine.ts'
import { jobWord, stageWord, taskWord } from './bodies.ts'
import { priorityFor } from './priorities.ts'
import { stageWords, taskWords } from './requests.ts'
import { jobWords } from './shapes.ts'

type Counts = Awaited<ReturnType<AskersEngine['countsByState']>>
/** A count under its labels, each with its value. */
type Count = readonly [labels: Readonly<Record<string, string>>, count: number]

export function serviceMetrics({ jobs, stages, tasks: all }: Counts): string {
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
