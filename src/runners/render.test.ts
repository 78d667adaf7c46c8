import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobPlan } from '../kernel/plan.ts'
import type { StageSpec } from '../spec/job-spec.ts'
import { parseJobSpec } from '../spec/parse-job-spec.ts'
import { manifestsFor, stagesToRun } from './render.ts'

const run = { command: ['true'] }
const runner = { kubernetes: { image: 'debian:12' } }

/** A job with one stage for each of these. */
function planWith(...stages: readonly Partial<StageSpec>[]): JobPlan {
  return parseJobSpec({ name: 'texts', stages: stages.map((stage, index) => ({ name: `stage-${index}`, ...stage })) })
}

test('of a job, Kubernetes is given the stages that run a command there, and no others', () => {
  const plan = planWith({ task: 't' }, { run, runner }, { run, runner: 'local' }, { run })
  assert.deepEqual(
    stagesToRun(plan).map(({ jobName, stageName, round }) => [jobName, stageName, round]),
    [['texts', 'stage-1', 1]],
  )
})

test('a stage has as many pods as it may have tasks at once, and a queue of its own unless it names one', () => {
  const [named, other, third] = stagesToRun(
    planWith({ run, runner, queue: 'ocr', parallelism: 8 }, { run, runner }, { run, runner }),
  )
  assert.deepEqual([named?.queue, named?.parallelism], ['ocr', 8])
  assert.equal(other?.parallelism, 1)
  assert.notEqual(other?.queue, third?.queue)
})

test('a stage has as many pods as its runner says, however many tasks it may have at once', () => {
  const many = { kubernetes: { image: 'debian:12', pods: 5 } }
  const [open, bounded] = stagesToRun(planWith({ run, runner: many }, { run, runner: many, parallelism: 2 }))
  assert.deepEqual([open?.parallelism, bounded?.parallelism], [5, 5])
})

test('the Jobs of a spec are made for the namespace, server, image and key that the settings name', () => {
  const away = { kubernetes: { image: 'debian:12', namespace: 'away' } }
  const [here, there] = manifestsFor(planWith({ run, runner }, { run, runner: away }), {
    namespace: 'jobs',
    serverUrl: 'https://pawl.example',
    pawlImage: 'registry.example/pawl:2',
    keySecret: { secret: 'workers', key: 'key' },
  })
  assert.deepEqual([here?.metadata?.namespace, there?.metadata?.namespace], ['jobs', 'away'])
  const pod = here!.spec!.template.spec!
  assert.equal(pod.initContainers?.[0]?.image, 'registry.example/pawl:2')
  assert.deepEqual(pod.containers[0]?.env?.slice(2), [{ name: 'PAWL_SERVER', value: 'https://pawl.example' }])
  assert.deepEqual(pod.volumes?.at(-1)?.secret, { secretName: 'workers', items: [{ key: 'key', path: 'key' }] })
})
