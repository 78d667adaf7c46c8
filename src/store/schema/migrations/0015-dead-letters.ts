/** Dead letters are kept until somebody acts on them, and so are their jobs: these are found by the letters they have. */
export const deadLetters = `
create index trouble_job on pawl.trouble (job_id) where state = 'dead_lettered';

-- Written by a process of an earlier version, which did not tell these.
update pawl.trouble x
   set type = t.type, lane_id = t.lane_id, job_id = t.job_id, stage_id = t.stage_id, ended_at = t.ended_at,
       gist = pawl.gist(t.error->>'message')
  from pawl.task t
 where t.id = x.task_id and x.type is null;
`
