/** Workers, keys, and requests that must take effect once. */
export const callerTables = `
-- A worker process, and the claim of its last sync, so that a lost response can be sent again.
create table pawl.session (
  id         uuid primary key,
  worker     text not null,
  queues     text[] not null,
  started_at timestamptz not null,
  seen_at    timestamptz not null,
  sync_id    text,
  claim_id   bigint,
  -- How many tasks the worker runs at once; null: it did not say.
  slots      integer
) with (fillfactor = 50);

-- Responses to requests with an idempotency key, so that a repeated request gets the first response.
create table pawl.idempotency (
  holder     text not null,
  key        text not null,
  request    text not null,
  answer     jsonb,
  created_at timestamptz not null,
  primary key (holder, key)
);
create index idempotency_age on pawl.idempotency using brin (created_at);

-- Keys of the HTTP API. A key has 256 random bits, so a fast hash of it is as safe as a slow one.
create table pawl.key (
  id         uuid primary key,
  name       text not null,
  role       text not null,
  queues     text[],
  hash       text not null unique,
  created_at timestamptz not null,
  revoked_at timestamptz,
  created_by text,
  revoked_by text,
  constraint key_revoked_by_somebody check (revoked_by is null or revoked_at is not null)
);

-- Dead letters that are being redriven. The request selects them once. They are revived in order, and the progress is
-- written in the same transaction, so another process can continue at the right place.
create table pawl.redrive (
  id         uuid primary key,
  actor      text not null,
  reason     text,
  -- Tasks per second; null: all at once.
  rate       double precision,
  -- Replaces the payload of each task; null: they keep theirs.
  payload    json,
  created_at timestamptz not null default pawl.clock(),
  -- When a process last continued it.
  at         timestamptz not null default pawl.clock(),
  ended_at   timestamptz,
  ids        uuid[] not null,
  total      integer not null,
  -- How many tasks were tried and what became of them, with the reasons of the first refusals.
  seen       integer not null default 0,
  redriven   integer not null default 0,
  refused    integer not null default 0,
  refusals   jsonb not null default '[]',
  constraint redrive_adds_up check (seen = redriven + refused and seen <= total)
);
alter table pawl.redrive alter column ids set storage external;
create index redrive_open on pawl.redrive (at) where ended_at is null;
`
