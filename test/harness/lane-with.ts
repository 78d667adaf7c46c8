import { randomBytes } from 'node:crypto'
import { newId } from '../../src/kernel/id.ts'
import type { Fresh } from './fresh.ts'

export interface NewLane {
  readonly queue: string
  readonly stageId: string
  readonly jobId: string
  readonly priority: number
  readonly open: boolean
  /** How many of its tasks may be held at once; null: any number. */
  readonly parallelism: number | null
  /** When its job should and when it must be done, counted from now. */
  readonly softInSeconds: number | null
  readonly hardInSeconds: number | null
}

/** Inserts a lane of a stage with this number of due tasks, without a job. */
export async function laneWith({ engine, sql }: Fresh, tasks: number, options: Partial<NewLane> = {}) {
  const lane: NewLane = {
    ...{ queue: `q-${randomBytes(4).toString('hex')}`, stageId: newId(), jobId: newId(), priority: 0, open: true },
    ...{ parallelism: null, softInSeconds: null, hardInSeconds: null },
    ...options,
  }
  const { queue, stageId, jobId, priority, open, parallelism, softInSeconds, hardInSeconds } = lane
  const [made] = await sql<{ id: number }>`
    insert into pawl.lane (queue, stage_id, job_id, priority, rank, open, parallelism, soft_at, hard_at)
    values (${queue}, ${stageId}::uuid, ${jobId}::uuid, ${priority}::int, ${priority}::int, ${open}::boolean,
            ${parallelism}::int, pawl.clock() + make_interval(secs => ${softInSeconds}::float8),
            pawl.clock() + make_interval(secs => ${hardInSeconds}::float8))
    returning id`
  const laneId = made!.id
  const type = `nursery-${laneId}`
  const queued = await engine.enqueueMany(Array.from({ length: tasks }, (_, n) => ({ type, payload: n })))
  const ids = queued.map(({ id }) => id)
  await sql`
    update pawl.task set lane_id = ${laneId}, job_id = ${jobId}::uuid, stage_id = ${stageId}::uuid
     where id = any(${ids}::uuid[])`
  await sql`update pawl.due set lane_id = ${laneId} where id = any(${ids}::uuid[])`
  return { ...lane, laneId, ids }
}
