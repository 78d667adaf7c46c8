/** The systems whose words Pawl speaks: each one's routes under `/dialects/<name>`, and `--vocabulary` in the CLI. */
import type { OperationName } from './operations.ts'

export const dialectNames = ['marie', 'jobnik', 'falconeri', 'pipeline', 'jsm'] as const
export type DialectName = (typeof dialectNames)[number]

export type Spoken = 'job' | 'stage' | 'task' | 'attempt' | 'artifact' | 'event'

/** The operations whose answers the CLI can show in another system's words, and what they answer with. */
export const spokenBy: Partial<Readonly<Record<OperationName, Spoken>>> = {
  jobs: 'job',
  job: 'job',
  jobEvents: 'event',
  jobStages: 'stage',
  jobArtifacts: 'artifact',
  jobTasks: 'task',
  stages: 'stage',
  stage: 'stage',
  stageEvents: 'event',
  stageArtifacts: 'artifact',
  stageTasks: 'task',
  tasks: 'task',
  task: 'task',
  taskEvents: 'event',
  attempts: 'attempt',
  taskArtifacts: 'artifact',
  deadLetters: 'task',
  events: 'event',
}
