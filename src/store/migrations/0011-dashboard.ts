/** What people look at. */
export const dashboard = `
-- What payloads of a type look like, as the last worker said that knew; null: none did.
alter table pawl.task_type add column payload_schema json;

-- How deep each queue was, once a minute; a queue that was empty then has no row.
create table pawl.depth (
  at    timestamptz not null,
  queue text collate "C" not null,
  due   bigint not null,
  held  bigint not null,
  primary key (at, queue)
);
`
