/** A task tells how often it was tried. */
export const tries = `
-- How often a task was claimed in its round: every claim raises the epoch, and only a round begins queued or blocked.
create function pawl.tries(by_now integer, history pawl.step[]) returns integer language sql immutable parallel safe as $$
  select by_now - (select max(h.epoch) from unnest(history) as h where h.state in ('queued', 'blocked')) $$;

create or replace view pawl.task_view as
select t.id, l.queue, t.type, t.state, l.priority, t.seq, t.round, t.epoch, t.failures, t.losses, t.careful, t.partial,
       t.run_at, (t.history[1]).ts as created_at, (t.history[t.seq]).ts as changed_at,
       coalesce(t.started_at, (
         select max(h.ts) from unnest(t.history) as h where h.epoch = t.epoch and h.state = 'running')) as started_at,
       t.ended_at,
       t.lease_until, t.cancel_at, t.expire_at, t.keep_until, t.owner, t.job_id, t.stage_id, t.dedupe_key,
       t.correlation_id, t.traceparent, t.payload, t.settings, t.metadata, t.progress, t.checkpoint, t.output, t.error,
       trouble.evidence as dead_letter, pawl.tries(t.epoch, t.history) as tries
  from pawl.task t
  join pawl.lane l on l.id = t.lane_id
  left join pawl.trouble on trouble.task_id = t.id;
`
