/** An independent check of the tables after a run: plain SQL, and none of the engine's code. */
import assert from 'node:assert/strict'
import pg from 'pg'
import { eventually } from '../harness/eventually.ts'

/** Everything that the clients of the installation saw. */
export interface Seen {
  /** Tasks and jobs that were acknowledged. */
  readonly tasks: string[]
  readonly jobs: string[]
  /** Events in feed order, as `entity seq`. */
  readonly events: string[]
  /** How often the feed rejected a cursor as gone. */
  gone: number
}

export interface Checked {
  readonly url: string
  readonly schema: string
  readonly seen: Seen
  readonly mayLose?: boolean
  /** Resolves when the reader of the feed has read everything. */
  follow(): Promise<void>
}

export async function checkTables({ url, schema, seen, mayLose = false, follow }: Checked): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    const ask = async <Row>(text: string): Promise<Row[]> =>
      (await client.query(text.replaceAll('pawl.', `"${schema}".`))).rows
    await eventually(
      'every task and every job has ended',
      async () => {
        const [open] = await ask<{ n: string }>(`
          select (select count(*) from pawl.task where ended_at is null)
               + (select count(*) from pawl.job where ended_at is null) as n`)
        return open!.n === '0'
      },
      60,
    )
    const tasks = await ask<{ id: string; state: string; seq: number; steps: number; successes: number }>(`
      select id, state, seq, cardinality(history) as steps,
             (select count(*)::int from unnest(history) as h where h.state = 'succeeded') as successes
        from pawl.task`)
    const found = new Map(tasks.map(task => [task.id, task]))
    const jobs = await ask<{ id: string; state: string }>('select id, state from pawl.job')
    const jobStates = new Map(jobs.map(({ id, state }) => [id, state]))
    if (!mayLose) {
      assert.deepEqual(
        seen.tasks.filter(id => !found.has(id)),
        [],
        'every acknowledged task is there',
      )
      assert.deepEqual(
        seen.jobs.filter(id => jobStates.get(id) !== 'succeeded').map(id => [id, jobStates.get(id)]),
        [],
        'every acknowledged job is there and has succeeded',
      )
    }
    for (const { id, state, seq, steps, successes } of tasks) {
      assert.equal(state, 'succeeded', `task ${id} succeeded`)
      assert.equal(successes, 1, `task ${id} succeeded once`)
      assert.equal(steps, seq, `task ${id} has one event for each seq`)
    }
    await follow()
    const written = await ask<{ event: string }>(`
      select id || ' ' || n as event
        from (select id, seq from pawl.task union all select id, seq from pawl.stage union all select id, seq from pawl.job) e
       cross join generate_series(1, e.seq) as n`)
    const events = new Set(seen.events)
    assert.equal(events.size, seen.events.length, 'the feed repeats nothing')
    assert.deepEqual(
      written.map(({ event }) => event).filter(event => !events.has(event)),
      [],
      'the feed leaves nothing out',
    )
    assert.equal(events.size, written.length, 'the feed tells of nothing that is not there')
  } finally {
    await client.end()
  }
}
