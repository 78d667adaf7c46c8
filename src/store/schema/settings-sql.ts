import { defaultSettings } from '../../kernel/settings.ts'

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

-- When an ended task may be removed; null: not before somebody has acted on it. Dead letters have a retention of their
-- own, and stay until the task's date (keep_until) at least.
create or replace function pawl.kept_until(state text, keep_until timestamptz, ended_at timestamptz, own jsonb, typed jsonb)
  returns timestamptz language sql stable parallel safe as $$
  select case when state <> 'dead_lettered'
              then coalesce(keep_until, ended_at + make_interval(secs => pawl.setting(own, typed, 'keepSeconds')))
              when pawl.setting(own, typed, 'keepDeadLetterSeconds') is not null
              then greatest(keep_until,
                            ended_at + make_interval(secs => pawl.setting(own, typed, 'keepDeadLetterSeconds')))
         end
$$;
`
}
