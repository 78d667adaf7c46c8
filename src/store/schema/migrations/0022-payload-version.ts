/** An insert names the version of the payload schema that its payloads were checked against. */
export const payloadVersion = `
-- Identifies the schema by its content, so that a schema that is replaced, deleted or restored never has the version of
-- another one. Null: the type has no schema.
alter table pawl.task_type
  add column payload_version text generated always as (to_hex(hashtextextended(payload_schema::text, 0))) stored;
`
