/**
 * Facts about leases and jobs that this process has seen, to save reading them again. A lease may have ended since, and a
 * job may have got more stages. So a known lease never decides: a report under it is fenced like any other, and if it is
 * refused, the task is read.
 */
import type { ArtifactView } from '../protocol/files/artifacts.ts'
import type { JobView } from '../protocol/jobs/jobs.ts'
import type { TaskView } from '../protocol/tasks/tasks.ts'
import { isObject } from '../schema/check.ts'

const mostLeases = 10_000
const mostJobs = 1000
const mostFilesOfLease = 20

export interface KnownLease extends Pick<TaskView, 'id' | 'epoch' | 'owner' | 'queue' | 'jobId' | 'stageId'> {
  /** The key that claimed; '': none. */
  readonly holder: string
  /** The folder for its output files. */
  readonly outputs: string | null
  /** Files that it has registered and not yet reported further, by id. */
  readonly files: Map<string, Pick<ArtifactView, 'name' | 'uri'>>
}

/** Facts that a dialect derives from a job. */
type Derive<Facts> = (job: JobView) => Facts

export interface Known {
  readonly leases: ReturnType<typeof boundedMap<KnownLease>>
  readonly jobsBy: <Facts>(derive: Derive<Facts>) => ReturnType<typeof boundedMap<Facts>>
}

const knownByEngine = new WeakMap<object, Known>()

export function knownTo(engine: object): Known {
  const known = knownByEngine.get(engine) ?? makeKnown()
  knownByEngine.set(engine, known)
  return known
}

function makeKnown(): Known {
  const jobs = new WeakMap<Derive<unknown>, ReturnType<typeof boundedMap<unknown>>>()
  return {
    leases: boundedMap<KnownLease>(mostLeases),
    jobsBy<Facts>(derive: Derive<Facts>) {
      const known = jobs.get(derive) ?? boundedMap<unknown>(mostJobs)
      jobs.set(derive, known)
      return known as ReturnType<typeof boundedMap<Facts>>
    },
  }
}

/** A map that forgets its oldest entries. Ids may be written in upper case. */
function boundedMap<Value>(most: number) {
  const entries = new Map<string, Value>()
  return {
    get: (id: string) => entries.get(id.toLowerCase()),
    forget: (id: string) => void entries.delete(id.toLowerCase()),
    set(id: string, value: Value) {
      entries.delete(id)
      entries.set(id, value)
      if (entries.size > most) entries.delete(entries.keys().next().value!)
    },
  }
}

export function leaseOfTask(task: TaskView, holder: string): KnownLease {
  const { id, epoch, owner, queue, jobId, stageId, payload } = task
  const outputs = isObject(payload) && typeof payload.outputs === 'string' ? payload.outputs : null
  return { id, epoch, owner, queue, jobId, stageId, holder, outputs, files: new Map() }
}

export function rememberFiles({ files }: KnownLease, reported: readonly ArtifactView[]): void {
  if (reported.length > mostFilesOfLease) return
  for (const { id, name, uri, state } of reported) if (state === 'registered') files.set(id, { name, uri })
}
