/** Pages and claims are limited by their bytes as well as their rows. */
export const pageBytes = `
-- About how many bytes a stored value has as text. Finding out the size of a compressed value would mean reading it, so
-- it counts eight times.
create function pawl.estimated_bytes(value anyelement) returns bigint language sql immutable parallel safe as $$
  select coalesce(pg_column_size(value), 0)::bigint * case when pg_column_compression(value) is null then 1 else 8 end $$;

-- The size of the only task of this row, which is large; null: small tasks, which a claim does not count.
alter table pawl.due add column bytes bigint;
`
