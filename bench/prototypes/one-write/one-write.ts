// The product's own claim and settle, with one write per task instead of two: a claim is one row for the whole batch, and
// the row of a task is written when its attempt ends, with all its events. Everything else in the two statements is the
// product's text. If that changes so much that a part is no longer found, the prototype fails.

import type { Driver } from '../../../dist/store/driver/sql.js'

/** Changes a schema of the product for this prototype. */
export async function adaptSchema(query: (text: string) => Promise<{ rows: Record<string, string>[] }>): Promise<void> {
  const { rows } = await query(
    "select pg_get_triggerdef(oid) as text from pg_trigger where tgname = 'task_moves_legally' and tgrelid = 'pawl.task'::regclass",
  )
  const guard = rows[0]!.text!
  const [, begin, refused, rest] = /^(.*? WHEN )(\(.*\))( EXECUTE FUNCTION .*)$/s.exec(guard) ?? []
  if (refused === undefined) throw new Error('the guard of the moves of a task has another shape')
  await query(`
    create table pawl.batch_claim (
      id         bigint generated always as identity primary key,
      look_at    timestamptz not null,
      claimed_at timestamptz not null default pawl.clock(),
      owner      text collate "C" not null,
      actor      text collate "C" not null,
      ids        uuid[] not null,
      epochs     integer[] not null
    );
    alter table pawl.batch_claim alter column ids set storage external, alter column epochs set storage external;
    create index batch_claim_look on pawl.batch_claim (look_at);
    alter table pawl.task drop constraint task_lease_iff_held;
    drop trigger task_moves_legally on pawl.task;
    ${begin} ((not ((${wholeAttempt}) is true)) and ${refused}) ${rest}`)
}

/** A third compound path: claimed, started and ended in one step, recognized by seq + 3. */
const wholeAttempt = `
  new.seq = old.seq + 3 and new.round = old.round and new.epoch = old.epoch + 1 and new.id = old.id
  and record_image_eq(row(new.history[:old.seq]), row(old.history))
  and (new.history[old.seq + 1]).state = 'assigned' and (new.history[old.seq + 2]).state = 'running'
  and old.state in ('queued', 'retrying') and new.state in ('succeeded', 'skipped', 'failed', 'retrying')`

/** For one worker: it must settle what it has claimed before it claims again. */
export function oneWriteDriver(driver: Driver): Driver {
  let claimId: string | null = null
  let places = new Map<string, number>()
  const rewritten = new Map<string, string>()
  const once = (text: string, rewrite: (text: string) => string) => {
    const known = rewritten.get(text) ?? rewrite(text)
    rewritten.set(text, known)
    return known
  }
  return {
    ...driver,
    async query(text, values) {
      if (text.includes('claimed as (')) {
        const answer = await driver.query(once(text, rewriteClaim), values)
        const [row] = answer.rows
        claimId = row?.[answer.fields.indexOf('claim_id')] as string | null
        const ids = row?.[answer.fields.indexOf('ids')] as string[] | null
        places = new Map(ids?.map((id, index) => [id, index + 1]))
        return answer
      }
      if (!text.includes('moved as (')) return driver.query(text, values)
      const ids = values[0]!.slice(1, -1).split(',')
      const own = [String(claimId), `{${ids.map(id => places.get(id) ?? 0).join(',')}}`]
      return driver.query(once(text, rewriteSettle), [...values, ...own])
    },
  }
}

function rewriteClaim(text: string): string {
  const update = between(text, 'claimed as (\n', '\n      returning ')
  const lease = between(update, 'lease_until = ', ',\n             history')
  const where = update.slice(update.indexOf('where (not candidate.careful'))
  const owner = /owner +?= (\$\d+)/.exec(update)?.[1]
  const actor = /'assigned',\s+null, (\$\d+), null/.exec(update)?.[1]
  const returned = between(text, `${update}\n      returning `, '\n    ),')
  return replaceAll(text, [
    // The tasks are only read. Their rows of `due` are locked and deleted, so no other claim takes them.
    [
      `${update}\n      returning ${returned}`,
      `select ${returned}
        from candidates candidate
       cross join lateral (
               select t.id, t.epoch + 1 as epoch, t.seq, t.type, t.payload, t.failures, t.losses, t.careful, t.checkpoint,
                      t.correlation_id, t.traceparent, t.settings, ${lease} as lease_until
                 from pawl.task t
                ${where}) as t`,
    ],
    // The event of the claim enters the feed with those of the end.
    [between(text, '\n    feed_entry as (', '\n    lease_entry'), '', '\n    feed_entry as ('],
    [
      'insert into pawl.claim (look_at, ids, epochs) select look_at, ids, epochs from',
      `insert into pawl.batch_claim (look_at, owner, actor, ids, epochs)
      select look_at, ${owner}, ${actor}, ids, epochs from`,
    ],
    ['as guard\n', 'as guard, (select id from lease_entry) as claim_id\n'],
  ])
}

/**
 * The claim's row is the fence: the rescue would delete or change it, and waits for the share lock. A report must name a
 * task of the claim by its place and epoch.
 */
function rewriteSettle(text: string): string {
  const update = between(text, 'moved as (\n', '\n      returning ')
  const source = between(update, 'from unnest(', ' as report (id, epoch, output, ran_us)').trimEnd()
  const last = '(t.history[t.seq]).ts'
  return replaceAll(text, [
    [
      '\n    moved as (\n',
      `
    locked as materialized (
      select * from pawl.batch_claim where id = $6::bigint for share
    ),
    lease as materialized (
      select owner, actor, claimed_at, ids || '{}' as ids, epochs || '{}' as epochs from locked
    ),
    moved as (\n`,
    ],
    [
      update,
      `      update pawl.task t
         set state    = 'succeeded',
             seq      = t.seq + 3,
             epoch    = report.epoch,
             owner    = lease.owner,
             ended_at = greatest(pawl.clock(), ${last}),
             error    = null,
             output   = report.output,
             history  = t.history || array[
               row(greatest(lease.claimed_at, ${last}), report.epoch, 'assigned', null, lease.actor, null, null)::pawl.step,
               row(greatest(pawl.clock() - report.ran_us * interval '1 microsecond', lease.claimed_at, ${last}),
                   report.epoch, 'running', null, null, 'implied', null)::pawl.step,
               row(greatest(pawl.clock(), ${last}), report.epoch, 'succeeded', null, null, null, null)::pawl.step]
        from lease cross join unnest(${source.slice(0, -1)}, $7::int[]) as report (id, epoch, output, ran_us, place)
       where lease.ids[report.place] = report.id and lease.epochs[report.place] = report.epoch
         and t.id = any(array[report.id]) and t.epoch = report.epoch - 1 and t.state in ('queued', 'retrying')
         and not t.files`,
    ],
    [
      'array_agg(id) filter (where begins) || array_agg(id) as moved',
      'array_agg(id) || array_agg(id) || array_agg(id) as moved',
    ],
    [
      'array_agg(seq - 1) filter (where begins) || array_agg(seq) as seqs',
      'array_agg(seq - 2) || array_agg(seq - 1) || array_agg(seq) as seqs',
    ],
  ])
}

function between(text: string, before: string, after: string): string {
  const from = text.indexOf(before)
  const to = text.indexOf(after, from + before.length)
  if (from < 0 || to < 0) throw new Error(`the statement has changed: no ${before.trim()} … ${after.trim()}`)
  return text.slice(from + before.length, to)
}

/** Replaces each part once; with a prefix, the part that follows it, and the prefix as well. */
function replaceAll(text: string, parts: readonly (readonly [string, string, string?])[]): string {
  let made = text
  for (const [old, replacement, prefix = ''] of parts) {
    if (!made.includes(prefix + old))
      throw new Error(`the statement has changed: no ${(prefix + old).trim().slice(0, 60)}`)
    made = made.replace(prefix + old, () => replacement)
  }
  return made
}
