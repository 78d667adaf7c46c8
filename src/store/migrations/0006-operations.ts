/** What operators ask for that takes a while. */
export const operations = `
-- Dead letters that are to come back. Which ones is decided when it is asked for; they are then taken in order, and how
-- far it has come is written in the transaction that brings them back, so whoever goes on begins at the right place.
create table pawl.redrive (
  id         uuid primary key,
  actor      text not null,
  reason     text,
  -- Tasks per second; null: all at once.
  rate       double precision,
  -- Replaces the payload of each; null: they keep theirs.
  payload    json,
  created_at timestamptz not null default pawl.clock(),
  -- When somebody last went on with it.
  at         timestamptz not null default pawl.clock(),
  ended_at   timestamptz,
  ids        uuid[] not null,
  total      integer not null,
  -- How many have been looked at, and what became of them; of those refused, the first with the reason.
  seen       integer not null default 0,
  redriven   integer not null default 0,
  refused    integer not null default 0,
  refusals   jsonb not null default '[]',
  constraint redrive_adds_up check (seen = redriven + refused and seen <= total)
);
alter table pawl.redrive alter column ids set storage external;
create index redrive_open on pawl.redrive (at) where ended_at is null;
`
