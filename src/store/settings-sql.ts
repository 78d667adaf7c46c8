import { defaultSettings } from '../kernel/settings.ts'

/**
 * Settings as the database resolves them: the task's own, else its type's, else the kernel's default. Plain SQL, so
 * that they are inlined where they are used.
 */
export function settingsSql(): string {
  return `
create or replace function pawl.setting(own jsonb, typed jsonb, name text) returns float8
  language sql immutable parallel safe as $$
  select case when own ? name then (own->>name)::float8
              when typed ? name then (typed->>name)::float8
              else ('${JSON.stringify(defaultSettings)}'::jsonb->>name)::float8 end
$$;

-- A lease has one end: its own, or two missed heartbeats. least() passes over a heartbeat that is null.
create or replace function pawl.lease_seconds(own jsonb, typed jsonb) returns float8
  language sql immutable parallel safe as $$
  select least(pawl.setting(own, typed, 'leaseSeconds'), 2 * pawl.setting(own, typed, 'heartbeatSeconds'))
$$;
`
}
