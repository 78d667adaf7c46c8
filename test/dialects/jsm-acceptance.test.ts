/** The compliance checklist of Job State Machine v1, through its own routes. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { rescue } from '../../src/babysitter/rescue.ts'
import { type Dice, dice, seed } from '../harness/dice.ts'
import { type Served, served } from '../harness/served.ts'
import { type Event, type Job, type JsmClient, jsmClient, refusalOf, transitionsIn } from './jsm-client.ts'

const bounded = { timeout: 600_000 }

async function rigFor(t: TestContext): Promise<Served & { jsm: JsmClient }> {
  const run = await served(t)
  return { ...run, jsm: jsmClient(() => run.server.url) }
}

async function queued({ engine }: Served, count: number): Promise<string[]> {
  const items = Array.from({ length: count }, (_, n) => ({ type: 'mail', payload: n, retry: { delaySeconds: 0 } }))
  return (await engine.enqueueMany(items)).map(({ id }) => id)
}

const inParallel = <T>(many: number, each: (n: number) => Promise<T>) =>
  Promise.all(Array.from({ length: many }, (_, n) => each(n)))

test('64 claimers at once never claim a job twice, and leave none', bounded, async t => {
  const run = await rigFor(t)
  const ids = await queued(run, 400)
  const won: string[] = []
  await inParallel(64, async n => {
    for (;;) {
      const job = await run.jsm.claim({ worker: `claimer-${n}`, types: ['mail'], lease_sec: 120 })
      if (job === null) return
      assert.deepEqual([job.lease!.owner, job.lease!.epoch], [`claimer-${n}`, 1])
      won.push(job.id)
    }
  })
  assert.deepEqual(won.sort(), ids.sort())
})

const many = 1000

/** Makes a random request. It may be refused if the job was taken away. Returns the number of transitions made. */
async function endSomehow({ jsm }: { jsm: JsmClient }, worker: string, { id, lease }: Job, chance: Dice) {
  const mine = { worker, epoch: lease!.epoch }
  const fails = (error_class: string) => jsm.say(id, 'fail', { ...mine, error_class, message: 'no' })
  await jsm.say(id, 'start', mine)
  const thrown = chance.throw()
  if (thrown < 0.2) await fails('TransientError')
  else if (thrown < 0.25) await fails('PermanentError')
  else if (thrown < 0.3) await fails('ValidationError')
  else if (thrown < 0.35) await jsm.say(id, 'cancel', { mode: 'hard' })
  else if (thrown < 0.4) await jsm.say(id, 'dead_letter', { ...mine, reason_code: 'policy_violation' })
  else await jsm.say(id, 'succeed', mine)
}

test(
  `${many} jobs: there is exactly one event for each transition, in the order of the transitions`,
  bounded,
  async t => {
    const run = await rigFor(t)
    const ids = await queued(run, many)
    // Each job was queued. Each claim is followed by a start and by one end, which may be a return to the queue.
    let transitions = ids.length
    await inParallel(12, async n => {
      const chance = dice(seed + n)
      for (;;) {
        const job = await run.jsm.claim({ worker: `w-${n}`, types: ['mail'] })
        if (job === null) return
        await endSomehow(run, `w-${n}`, job, chance)
        transitions += 3
      }
    })
    const { items } = await run.engine.tasks({ limit: 1000 })
    const ends = new Map(items.map(({ id, state }) => [id, state]))
    let events = 0
    await inParallel(12, async n => {
      for (const id of ids.filter((_, index) => index % 12 === n)) {
        const history = await run.jsm.events(id)
        checkStory(history, ends.get(id)!)
        events += transitionsIn(history).length
      }
    })
    assert.equal(events, transitions)
  },
)

const ranks: Readonly<Record<string, number>> = { queued: 0, assigned: 1, running: 2 }
const rankOf = (state: string) => ranks[state] ?? 3

/**
 * Each event starts in the state in which the previous one ended. Within an epoch none leads back, except the return to
 * the queue.
 */
function checkStory(events: readonly Event[], end: string): void {
  const moves = events.filter(({ payload: { from, to } }) => from !== to).map(({ payload }) => payload)
  assert.deepEqual([moves[0]!.from, moves[0]!.to, moves.at(-1)!.to], [null, 'queued', end])
  for (const [index, move] of moves.entries()) {
    const last = moves[index - 1]
    if (last === undefined) continue
    assert.equal(move.from, last.to)
    assert.ok(rankOf(last.to) < 3, `${last.to} is the end`)
    if (move.epoch > last.epoch)
      assert.deepEqual([move.from, move.to, move.epoch], ['queued', 'assigned', last.epoch + 1])
    else assert.ok(move.to === 'queued' || rankOf(move.to) > rankOf(last.to), `${last.to} → ${move.to} leads back`)
  }
}

test(
  'under chaos no transition leads back, and every lease that expires returns its job to the queue or to the DLQ',
  bounded,
  async t => {
    const run = await rigFor(t)
    const { jsm } = run
    const ids = await queued(run, 150)
    const babysitter = rescue({ beginsBlind: false, now: () => 0 })
    const chance = dice(seed)
    const zombies: { worker: string; job: Job }[] = []
    let expired = 0
    for (let round = 0; (await run.engine.queues()).items[0]!.due > 0; round++) {
      assert.ok(round < 50, 'it comes to an end')
      const silent: Job[] = []
      await inParallel(8, async n => {
        const worker = `w-${round}-${n}`
        for (let job = await jsm.claim({ worker, types: ['mail'] }); job !== null; ) {
          const isSilent = chance.throw() < 0.3
          if (isSilent && chance.throw() < 0.7) await jsm.say(job.id, 'start', { worker })
          if (isSilent) {
            silent.push(job)
            zombies.push({ worker, job })
          } else await endSomehow(run, worker, job, chance)
          // A worker that was presumed dead reports, whoever holds its job by now.
          const zombie =
            chance.throw() < 0.2 ? zombies.find(({ job: { id } }) => !silent.some(one => one.id === id)) : undefined
          if (zombie !== undefined) await tooLate(jsm, zombie)
          job = await jsm.claim({ worker, types: ['mail'] })
        }
      })
      await run.advance(61)
      while ((await babysitter.run(run.engine.context)).more === true);
      for (const { id } of silent) {
        const { state, lease } = await jsm.job(id)
        assert.ok((state === 'queued' || state === 'dead_lettered') && lease === null, `${id} is ${state}`)
        if (state === 'dead_lettered') assert.equal(await reasonOf(jsm, id), 'infrastructure_failure')
        expired += 1
      }
    }
    assert.ok(expired > 20, `${expired} leases expired`)
    for (const zombie of zombies) await tooLate(jsm, zombie)
    for (const id of ids) {
      const { state } = await jsm.job(id)
      assert.ok(rankOf(state) === 3, `${id} has ended`)
      checkStory(await jsm.events(id), state)
    }
  },
)

async function tooLate(jsm: JsmClient, { worker, job: { id, lease } }: { worker: string; job: Job }): Promise<void> {
  const refusal = await refusalOf(jsm.say(id, 'succeed', { worker, epoch: lease!.epoch, result: 'late' }))
  assert.deepEqual([refusal.status, refusal.code], [409, 'LEASE_LOST'])
}

async function reasonOf(jsm: JsmClient, id: string): Promise<string | undefined> {
  return (await jsm.deadLetters('?limit=1000')).find(({ job_id }) => job_id === id)?.reason_code
}
