export const keys = `
/* Who may ask over HTTP. A key is 256 random bits, so a plain hash of it is as good as a slow one. */
create table pawl.key (
  id uuid primary key,
  name text not null,
  role text not null,
  queues text[],
  hash text not null unique,
  created_at timestamptz not null,
  revoked_at timestamptz
);
`
