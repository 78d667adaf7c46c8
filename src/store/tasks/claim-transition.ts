/** A claim assigns its tasks, or assigns and starts them: two events in one write. */
import { nextTime } from '../driver/clock.ts'
import { viaIndex } from '../driver/plans.ts'
import { type Literal, literal } from '../driver/sql.ts'

/** The parts of the statement that differ if the claim also starts its tasks. */
export interface Transition {
  readonly state: Literal
  /** How many events each task gets. */
  readonly events: number
  readonly startedAt: Literal
  readonly startEvent: Literal
  readonly ids: Literal
  readonly seqs: Literal
  /** Counts the first starts of stages, as the report of a start does (settle.ts). */
  readonly counts: Literal
  readonly begun: Literal
}

export const toAssigned: Transition = {
  state: literal("'assigned'"),
  events: 1,
  startedAt: literal('null'),
  startEvent: literal(''),
  ids: literal('array_agg(id)'),
  seqs: literal('array_agg(seq)'),
  counts: literal(''),
  begun: literal('null::uuid[]'),
}

export const toRunning: Transition = {
  state: literal("'running'"),
  events: 2,
  startedAt: nextTime('t'),
  startEvent: literal(
    `|| row(${nextTime('t').literal}, t.epoch + 1, 'running', null, null, 'reported_start', null)::pawl.step`,
  ),
  ids: literal('array_agg(id) || array_agg(id)'),
  seqs: literal('array_agg(seq - 1) || array_agg(seq)'),
  counts: literal(`
    first_start as materialized (
      select claimed.job_id, claimed.stage_id, count(*) as tasks
        from claimed
        join pawl.stage s on s.id = ${viaIndex('claimed.stage_id').literal}
        join pawl.job j on j.id = ${viaIndex('claimed.job_id').literal}
       where not (s.begun and j.begun)
       group by claimed.job_id, claimed.stage_id
    ),
    tally_entry as (
      insert into pawl.tally (job_id, stage_id, begun) select job_id, stage_id, tasks from first_start
      returning stage_id
    ),`),
  begun: literal('array(select stage_id from tally_entry)'),
}
