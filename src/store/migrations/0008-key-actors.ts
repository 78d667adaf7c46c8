export const keyActors = `
/* Who made a key, and who ended it. Of a key from before this was kept, nobody knows: null. */
alter table pawl.key
  add column created_by text,
  add column revoked_by text,
  add constraint key_revoked_by_somebody check (revoked_by is null or revoked_at is not null);
`
