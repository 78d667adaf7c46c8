/** What a client of a stream has seen, as short as an id: how far the job was, and each of its stages in their order. */
export interface Seen {
  readonly job: number
  readonly stages: readonly number[]
}

const form = /^\d{1,9}:(?:\d{1,9}(?:x\d{1,5})?(?:\.\d{1,9}(?:x\d{1,5})?)*)?$/
const nothing: Seen = { job: 0, stages: [] }
/** As many as a job may have. */
const mostStages = 10_000

/** Many stages that are equally far are one run: `2:2x40.1`. */
export function writeSeen({ job, stages }: Seen): string {
  const runs: { far: number; count: number }[] = []
  for (const far of Array.from(stages, far => far ?? 0)) {
    const last = runs.at(-1)
    if (last?.far === far) last.count += 1
    else runs.push({ far, count: 1 })
  }
  return `${job}:${runs.map(({ far, count }) => (count === 1 ? `${far}` : `${far}x${count}`)).join('.')}`
}

/** An id that is not ours says nothing: all is told from the beginning. */
export function readSeen(id: string | undefined): Seen {
  if (id === undefined || !form.test(id)) return nothing
  const [job = '0', rest = ''] = id.split(':')
  const runs = rest === '' ? [] : rest.split('.').map(run => run.split('x').map(Number))
  const total = runs.reduce((sum, [, count = 1]) => sum + count, 0)
  if (total > mostStages) return nothing
  return { job: Number(job), stages: runs.flatMap(([far = 0, count = 1]) => new Array<number>(count).fill(far)) }
}
