/** Deadlines of tasks that stand alone: tasks that have them lie in lanes of their own, so that these can be raised. */
export const sla = `
-- Which deadlines the tasks of a stand-alone lane have; null: none. Only roughly, for every lane costs a claim a look:
-- '64/512' holds what should be done in 64 to 128 seconds and must be in 512 to 1024.
alter table pawl.lane add column sla text collate "C";
alter table pawl.lane drop constraint lane_queue_stage_id_priority_key;
alter table pawl.lane add constraint lane_key unique nulls not distinct (queue, stage_id, priority, sla);

-- The stand-alone lane of tasks with these settings, of their own and of their type. One that is missing is made; of
-- two that make the same one at once, the second waits for the first and finds it made.
create function pawl.lane_for(queue text, priority integer, own jsonb, typed jsonb) returns integer
  language plpgsql as $$
declare
  soft   float8 := pawl.setting(own, typed, 'softDeadlineSeconds');
  hard   float8 := pawl.setting(own, typed, 'hardDeadlineSeconds');
  wanted text   := case when coalesce(soft, hard) is not null
                        then concat(power(2, floor(log(soft) / log(2))), '/', power(2, floor(log(hard) / log(2)))) end;
  lane   integer;
begin
  for tries in 1..2 loop
    select l.id into lane
      from pawl.lane l
     where l.queue = lane_for.queue and l.priority = lane_for.priority and l.stage_id is null
       and l.sla is not distinct from wanted;
    exit when lane is not null;
    insert into pawl.lane (queue, priority, rank, sla)
    values (lane_for.queue, lane_for.priority, lane_for.priority, wanted)
        on conflict do nothing
    returning id into lane;
    exit when lane is not null;
  end loop;
  return lane;
end $$;
`
