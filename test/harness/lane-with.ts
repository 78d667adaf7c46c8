import { randomBytes } from 'node:crypto'
import { newId } from '../../src/kernel/id.ts'
import { makeLane, type NewLane } from '../../src/store/lanes.ts'
import type { Fresh } from './fresh.ts'

/** A lane of a stage with so many due tasks, put there by hand: no job stands behind it. */
export async function laneWith({ engine, sql }: Fresh, tasks: number, said: Partial<NewLane> = {}) {
  const lane: NewLane = {
    ...{ queue: `q-${randomBytes(4).toString('hex')}`, stageId: newId(), jobId: newId(), priority: 0, open: true },
    ...{ parallelism: null, softInSeconds: null, hardInSeconds: null },
    ...said,
  }
  const [laneId] = await makeLane(sql, [lane])
  const type = `nursery-${laneId}`
  const queued = await engine.enqueueMany(Array.from({ length: tasks }, (_, n) => ({ type, payload: n })))
  const ids = queued.map(({ id }) => id)
  await sql`
    update pawl.task set lane_id = ${laneId!}, job_id = ${lane.jobId}::uuid, stage_id = ${lane.stageId}::uuid
     where id = any(${ids}::uuid[])`
  await sql`update pawl.due set lane_id = ${laneId!} where id = any(${ids}::uuid[])`
  return { ...lane, laneId: laneId!, ids }
}
