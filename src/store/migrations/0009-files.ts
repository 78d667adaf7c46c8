/** Files: what tasks are given, and what they put out. */
export const files = `
alter table pawl.stage
  -- Its inputs: to be found, being found, or all found; and how far they have become tasks.
  add column listing text collate "C" check (listing in ('wanted', 'under way', 'done')),
  add column list_at jsonb;

-- Stages whose inputs are being found, and when somebody may next go on with it.
create table pawl.listing (
  stage_id uuid primary key,
  job_id   uuid not null,
  at       timestamptz not null default pawl.clock(),
  tries    integer not null default 0,
  error    text
);

-- Few stages have files, and fewer are open.
create index stage_with_files on pawl.stage (id) where ended_at is null and plan->'files' is not null;

-- What was started for a round of a stage, and since when it has been found missing.
create table pawl.run (
  stage_id      uuid not null,
  round         integer not null,
  namespace     text not null,
  made_at       timestamptz not null default pawl.clock(),
  missing_since timestamptz,
  -- The round is over and nothing of it runs any more.
  stopped_at    timestamptz,
  primary key (stage_id, round)
);

-- It has put files out: what becomes of them is decided with its end.
alter table pawl.task add column files boolean not null default false;

-- The ledger of what tasks put out.
alter table pawl.artifact
  add column job_id     uuid,
  add column stage_id   uuid,
  -- The attempt that makes it.
  add column epoch      integer not null default 0,
  add column name       text collate "C" not null default '',
  -- Where it lies until its attempt has won; null: nothing lies there any more, or it went straight to its place.
  add column staged_uri text,
  add column size       bigint,
  add column sha256     text collate "C",
  -- Its task ended well under that attempt.
  add column won        boolean not null default false,
  -- The same file, put out by another job before.
  add column linked     uuid,
  add column error      text,
  -- When somebody may next try to bring it to its place, and how often that was tried.
  add column at         timestamptz not null default pawl.clock(),
  add column tries      integer not null default 0;
-- A URI can be longer than an index takes, so its hash stands for it.
create unique index artifact_one_per_uri on pawl.artifact (coalesce(job_id, task_id), md5(uri))
 where state in ('registered', 'uploaded', 'stored');
create index artifact_of_job on pawl.artifact (job_id, id);
create index artifact_open on pawl.artifact (job_id) where ended_at is null;
create index artifact_of_task on pawl.artifact (task_id, epoch);
create index artifact_of_stage on pawl.artifact (stage_id, name) where state = 'stored';
create index artifact_unstored on pawl.artifact (stage_id) where won and state in ('uploaded', 'error');
create index artifact_to_store on pawl.artifact (at) where won and state = 'uploaded';
create index artifact_to_sweep on pawl.artifact (at) where staged_uri is not null and ended_at is not null;
create index artifact_by_uri on pawl.artifact (md5(uri));

-- Which tasks were given a file or folder.
create table pawl.input (
  task_id uuid not null,
  uri     text collate "C" not null
);
create index input_of_task on pawl.input (task_id);
create index input_by_uri on pawl.input (md5(uri));

-- What makes a datum the same as one that was done before.
create table pawl.datum (
  task_id uuid primary key,
  digest  text collate "C" not null
);
create index datum_digest on pawl.datum (digest);

-- Folders that attempts upload to, and when to look for what dead ones left there.
create table pawl.staging (
  outputs text collate "C" not null,
  key     text collate "C" primary key,
  at      timestamptz not null,
  rounds  integer not null default 0
);
`
