/** Findings for every way in which part of a cluster vanishes, or only seems to. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Problem } from '../kernel/problem.ts'
import type { Seen, SeenJob, SeenPod } from './compare.ts'
import { compare, type Findings, type HeldWorker, lostOthers, type RunningStage } from './compare.ts'
import { jobNameOf } from './names.ts'

const now = new Date('2026-11-15T12:00:00Z')
const minutesAgo = (minutes: number) => new Date(now.getTime() - minutes * 60_000)

const stageId = '0190aaaa-bbbb-7ccc-8ddd-eeeeeeeeeeee'
const name = jobNameOf({ stageId, round: 1 })
const pod = `${name}-x7k2p`
const worker = `node-1/${pod}`

const stage = (more: Partial<RunningStage> = {}): RunningStage => ({
  stageId,
  round: 1,
  namespace: 'pawl',
  createdAt: minutesAgo(60),
  missingSince: null,
  ...more,
})
const job = (more: Partial<SeenJob> = {}): SeenJob => ({
  namespace: 'pawl',
  name,
  stageId,
  round: 1,
  state: 'active',
  reason: null,
  message: null,
  ...more,
})
const podSeen = (more: Partial<SeenPod> = {}): SeenPod => ({
  namespace: 'pawl',
  name: pod,
  node: 'node-1',
  stageId,
  phase: 'Running',
  reason: null,
  ...more,
})
const held = (more: Partial<HeldWorker> = {}): HeldWorker => ({ worker, namespace: 'pawl', ...more })
const seen = (more: Partial<Seen> = {}): Seen => ({ namespaces: ['pawl'], blind: [], jobs: [], pods: [], ...more })

interface Story {
  readonly stages?: readonly RunningStage[]
  readonly workers?: readonly HeldWorker[]
  readonly seen: Seen
  readonly finds: Partial<Findings>
}

const lost = (detail: string | null = null) => [{ worker, reason: 'worker pod disappeared', detail } as const]
const away = new Problem('KUBERNETES_UNREACHABLE')

const stories: Record<string, Story> = {
  // When a Kubernetes Job vanishes:
  'a Kubernetes job that is there is not missed': { stages: [stage()], seen: seen({ jobs: [job()] }), finds: {} },
  'a Kubernetes job that vanished is missing, and its stage goes on for now': {
    stages: [stage()],
    seen: seen(),
    finds: { missing: [stageId] },
  },
  'a Kubernetes job that was found missing 14 min 59 s ago may still come back': {
    stages: [stage({ missingSince: new Date(minutesAgo(15).getTime() + 1000) })],
    seen: seen(),
    finds: { missing: [stageId] },
  },
  'a Kubernetes job that was found missing 15 min ago and still is has vanished': {
    stages: [stage({ missingSince: minutesAgo(15) })],
    seen: seen(),
    finds: { missing: [stageId], vanishedFor15Min: [stageId] },
  },
  'a Kubernetes job that came back is as if it had never been missing': {
    stages: [stage({ missingSince: minutesAgo(600) })],
    seen: seen({ jobs: [job()] }),
    finds: { back: [stageId] },
  },
  'a stage that is hours old is not failed the first time that its Kubernetes job is missing': {
    stages: [stage({ createdAt: minutesAgo(600) })],
    seen: seen(),
    finds: { missing: [stageId] },
  },
  'a Kubernetes job that has not been made yet cannot vanish': {
    stages: [stage({ createdAt: null, missingSince: minutesAgo(600) })],
    seen: seen(),
    finds: {},
  },
  'what was missing in an earlier round does not count in this one': {
    stages: [stage({ createdAt: minutesAgo(1), missingSince: minutesAgo(600) })],
    seen: seen(),
    finds: { missing: [stageId] },
  },
  'the Kubernetes job of an earlier round does not stand for that of this one': {
    stages: [stage({ round: 2 })],
    seen: seen({ jobs: [job()] }),
    finds: { missing: [stageId], strays: [job()] },
  },
  'a job of the same name in another namespace does not stand for it': {
    stages: [stage()],
    seen: seen({ namespaces: ['pawl', 'other'], jobs: [job({ namespace: 'other' })] }),
    finds: { missing: [stageId], strays: [job({ namespace: 'other' })] },
  },
  'a Kubernetes job that ran into its deadline is named so, and is not missing': {
    stages: [stage()],
    seen: seen({
      jobs: [job({ state: 'failed', reason: 'DeadlineExceeded', message: 'Job was active longer than allowed' })],
    }),
    finds: {
      ended: [
        {
          stageId,
          why: 'its Kubernetes job ran longer than activeDeadlineSeconds (DeadlineExceeded: Job was active longer than allowed)',
        },
      ],
    },
  },
  'a Kubernetes job whose pods fail again and again is named so': {
    stages: [stage()],
    seen: seen({ jobs: [job({ state: 'failed', reason: 'BackoffLimitExceeded' })] }),
    finds: { ended: [{ stageId, why: 'too many pods of its Kubernetes job failed (BackoffLimitExceeded)' }] },
  },
  'a Kubernetes job that failed for a reason that Pawl does not know is named in Kubernetes’ words': {
    stages: [stage()],
    seen: seen({ jobs: [job({ state: 'failed', reason: 'PodFailurePolicy', message: 'so it says' })] }),
    finds: { ended: [{ stageId, why: 'its Kubernetes job failed (PodFailurePolicy: so it says)' }] },
  },
  'a Kubernetes job that somebody let complete works no more': {
    stages: [stage()],
    seen: seen({ jobs: [job({ state: 'complete' })] }),
    finds: { ended: [{ stageId, why: 'its Kubernetes job completed before the stage ended' }] },
  },
  'a Kubernetes job whose stage does not run is told, to be looked at again': {
    seen: seen({ jobs: [job()] }),
    finds: { strays: [job()] },
  },
  'a Kubernetes job that has ended is left to be looked at when its stage has too': {
    seen: seen({ jobs: [job({ state: 'failed', reason: 'DeadlineExceeded' })] }),
    finds: {},
  },

  // When the pod of a worker vanishes:
  'a worker whose pod runs is not lost': { workers: [held()], seen: seen({ pods: [podSeen()] }), finds: {} },
  'a worker whose pod is gone is lost at once': { workers: [held()], seen: seen(), finds: { lostWorkers: lost() } },
  'a worker whose pod was evicted is lost, and it is said why': {
    workers: [held()],
    seen: seen({ pods: [podSeen({ phase: 'Failed', reason: 'Evicted' })] }),
    finds: { lostWorkers: lost('Evicted') },
  },
  'a worker whose pod was killed for its memory is lost, and it is said why': {
    workers: [held()],
    seen: seen({ pods: [podSeen({ phase: 'Failed', reason: 'OOMKilled' })] }),
    finds: { lostWorkers: lost('OOMKilled') },
  },
  'a worker whose pod has ended well holds nothing any more': {
    workers: [held()],
    seen: seen({ pods: [podSeen({ phase: 'Succeeded' })] }),
    finds: { lostWorkers: lost() },
  },
  'a worker on a node that Kubernetes lost sight of may go on working: its lease decides': {
    workers: [held()],
    seen: seen({ pods: [podSeen({ phase: 'Unknown' })] }),
    finds: {},
  },
  'a worker that somebody started by hand on the same queue has no pod, and is not lost for it': {
    workers: [held({ worker: 'laptop-4711-beef' }), held({ worker: 'ci/runner-1' })],
    seen: seen(),
    finds: {},
  },
  'a pod of the same name in another namespace is not the worker’s': {
    workers: [held()],
    seen: seen({ namespaces: ['pawl', 'other'], pods: [podSeen({ namespace: 'other' })] }),
    finds: { lostWorkers: lost() },
  },

  // When the cluster cannot be observed:
  'an API that cannot be reached concludes nothing, however long it lasts': {
    stages: [stage({ missingSince: minutesAgo(600) })],
    workers: [held()],
    seen: seen({ namespaces: [], blind: [{ namespace: 'pawl', problem: away }] }),
    finds: {},
  },
  'what another namespace answers says nothing about the one that did not': {
    stages: [stage({ missingSince: minutesAgo(600) })],
    workers: [held()],
    seen: seen({ namespaces: ['other'], blind: [{ namespace: 'pawl', problem: away }] }),
    finds: {},
  },
}

const nothing: Findings = { missing: [], back: [], vanishedFor15Min: [], ended: [], lostWorkers: [], strays: [] }

for (const [title, { stages = [], workers = [], seen, finds }] of Object.entries(stories)) {
  test(title, () => {
    assert.deepEqual(compare({ now, stages, workers, seen }), { ...nothing, ...finds })
  })
}

test('a worker is not lost while a pod of its name lives in any namespace, as long as its own is not known', () => {
  const pods = [
    { namespace: 'old', name: 'worker-0', node: null, phase: 'Failed' as const, reason: null },
    { namespace: 'new', name: 'worker-0', node: null, phase: 'Running' as const, reason: null },
  ]
  const other = { worker: '/worker-0', node: null, name: 'worker-0' }
  const found = { namespaces: ['old', 'new'], pods }
  assert.deepEqual(lostOthers([{ ...other, namespace: null }], found), { lost: [], alive: [['/worker-0', 'new']] })
  assert.equal(lostOthers([{ ...other, namespace: 'old' }], found).lost.length, 1)
})
