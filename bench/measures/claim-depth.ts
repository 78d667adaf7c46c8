import type { Figure, Measure } from '../contender.ts'
import { milliseconds, table, whole } from '../markdown.ts'
import { type OwnStore, openOwnStore } from '../own-store.ts'
import { median } from '../statistics.ts'

const claims = 40

/** The cost of claiming 100 tasks, for different numbers of queued tasks, in one lane and in many. */
export const measure: Measure = {
  name: 'claim-depth',
  async run({ cluster, quick }) {
    const depths = await openOwnStore(cluster, 'claim-depth')
    const byDepth: string[][] = []
    let queued = 0
    let first = 0
    let deepest = 1
    for (const depth of quick ? [1_000, 20_000] : [1_000, 100_000, 1_000_000]) {
      await depths.fill(depth + claims * 100 - queued)
      queued = depth
      const took = await medianClaim(depths)
      first ||= took
      deepest = took / first
      byDepth.push([whole(depth), milliseconds(took), `${(took / first).toFixed(2)}x`])
    }
    await depths.close()

    const byLanes: string[][] = []
    const tasks = quick ? 20_000 : 100_000
    let oneLane = 0
    let mostLanes = 1
    for (const lanes of [1, quick ? 2_000 : 10_000]) {
      const store = await openOwnStore(cluster, `claim-lanes-${lanes}`)
      await store.fill(tasks)
      if (lanes > 1) await spread(store, lanes)
      const took = await medianClaim(store)
      oneLane ||= took
      mostLanes = took / oneLane
      byLanes.push([whole(lanes), milliseconds(took), `${(took / oneLane).toFixed(2)}x`])
      await store.close()
    }
    const figures: Figure[] = [
      { name: 'claim-depth.deepest', value: deepest, unit: 'x', better: 'lower' },
      { name: 'claim-depth.lanes', value: mostLanes, unit: 'x', better: 'lower' },
    ]
    const markdown = [
      table(['queued', 'a claim of 100, median', 'vs 1,000 queued'], byDepth),
      table([`open lanes of ${whole(tasks)} queued`, 'a claim of 100, median', 'vs 1 lane'], byLanes),
    ].join('\n\n')
    return { title: 'Claim cost by depth of the queue, and by its lanes', markdown, figures }
  },
}

async function medianClaim(store: OwnStore): Promise<number> {
  await store.tidy()
  const took: number[] = []
  for (let claim = 0; claim < claims; claim++) {
    const began = performance.now()
    const { claimed } = await store.engine.sync({ worker: 'bench', queues: ['noop'], claim: 100 })
    took.push(performance.now() - began)
    if (claimed.length !== 100) throw new Error(`a claim of 100 won ${claimed.length}`)
  }
  return median(took)
}

/**
 * Distributes the tasks over several lanes of the same queue and rank, like a job with that many stages. A claim returns
 * only tasks whose time is that of their row in `due`, so all tasks of a lane get the same time.
 */
async function spread({ client }: OwnStore, lanes: number): Promise<void> {
  await client.query(`
    insert into pawl.lane (queue, stage_id, priority)
    select 'noop', gen_random_uuid(), 0 from generate_series(1, ${lanes});
    create temp table dealt as
      select t.id, min(t.run_at) over (partition by l.id) as run_at, t.type, l.id as lane_id
        from (select id, run_at, type, row_number() over (order by id) % ${lanes} as n from pawl.task) as t
        join (select id, row_number() over (order by id) % ${lanes} as n from pawl.lane where stage_id is not null) as l
       using (n);
    truncate pawl.due;
    insert into pawl.due (lane_id, run_at, id, ids, type)
      select lane_id, min(run_at), min(id::text)::uuid, array_agg(id order by id), type from dealt group by lane_id, type;
    update pawl.task t set lane_id = dealt.lane_id, run_at = dealt.run_at from dealt where t.id = dealt.id`)
}
