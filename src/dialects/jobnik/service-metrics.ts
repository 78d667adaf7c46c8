/** Jobnik's own figures, in the text format of Prometheus. As there, a status that nothing has is told as 0. */
import type { Pawl } from '../../engine/engine.ts'
import { jobWord, stageWord, taskWord } from './bodies.ts'
import { priorityFor } from './priorities.ts'
import { stageWords, taskWords } from './requests.ts'
import { jobWords } from './shapes.ts'

type Counts = Awaited<ReturnType<Pawl['countsByState']>>
type Labels = Readonly<Record<string, string>>

/** One series of a metric for each combination of labels. */
class Gauge {
  readonly #values = new Map<string, number>()
  readonly #head: string
  readonly #name: string

  constructor(name: string, help: string) {
    this.#name = name
    this.#head = `# HELP ${name} ${help}\n# TYPE ${name} gauge`
  }

  add(labels: Labels, count: number): void {
    const series = Object.entries(labels).map(([label, value]) => `${label}="${escaped(value)}"`)
    const key = `${this.#name}{${series.join(',')}}`
    this.#values.set(key, (this.#values.get(key) ?? 0) + count)
  }

  text(): string {
    return [this.#head, ...[...this.#values].map(([series, value]) => `${series} ${value}`), ''].join('\n')
  }
}

const escaped = (value: string) => value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')

const typesIn = (rows: readonly { readonly queue: string }[]) => new Set(rows.map(({ queue }) => queue))

export function serviceMetrics({ jobs, stages, tasks: all }: Counts): string {
  const tasks = all.filter(({ staged }) => staged)
  const byJob = new Gauge('jobnik_jobs_by_status', 'Current number of jobs by status')
  for (const job_status of jobWords) byJob.add({ job_status }, 0)
  for (const { count, ...job } of jobs) byJob.add({ job_status: jobWord(job) }, count)

  const byStage = new Gauge('jobnik_stages_by_status', 'Current number of stages by status')
  for (const stage_type of typesIn(stages)) {
    for (const stage_status of stageWords) byStage.add({ stage_status, stage_type }, 0)
  }
  for (const { count, queue, gated, ...stage } of stages) {
    const stage_status = stageWord({ ...stage, gate: gated ? {} : null })
    byStage.add({ stage_status, stage_type: queue }, count)
  }

  const byTask = new Gauge('jobnik_tasks_by_status', 'Current number of tasks by status')
  const byPriority = new Gauge('jobnik_tasks_count', 'Current number of tasks by type of stage, priority and status')
  for (const stage_type of typesIn(tasks)) {
    for (const task_status of taskWords) byTask.add({ task_status, stage_type }, 0)
  }
  for (const { count, queue: stage_type, priority, state } of tasks) {
    const task_status = taskWord(state)
    byTask.add({ task_status, stage_type }, count)
    byPriority.add({ stage_type, priority: priorityFor(priority), task_status }, count)
  }
  return [byTask, byStage, byJob, byPriority].map(gauge => gauge.text()).join('')
}
