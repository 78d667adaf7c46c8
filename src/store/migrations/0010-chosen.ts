/** What callers choose and workers offer. */
export const chosen = `
-- Ids of tasks and jobs that whoever made them chose. Each is used once: under an id that is used again, a worker that
-- was thought dead could settle what another holds, and the feed would tell events of two as those of one. So an id is
-- remembered for a while after what had it is gone.
create table pawl.chosen_id (
  id       uuid primary key,
  freed_at timestamptz
);
create index chosen_id_freed on pawl.chosen_id (freed_at) where freed_at is not null;

-- How many tasks a worker does at once; null: it does not say.
alter table pawl.session add column slots integer;
`
