import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { eventually } from '../../../test/harness/eventually.ts'
import { fresh } from '../../../test/harness/fresh.ts'
import { served } from '../../../test/harness/served.ts'
import { connect } from '../../client/client.ts'
import { parseJobSpec } from '../../spec/parse-job-spec.ts'
import { defineTask } from '../../worker/define-task.ts'
import { startWorker } from '../../worker/worker.ts'
import { defineJob, type JobBuilder } from './define-job.ts'
import { cel, type Ref } from './refs.ts'

const list = defineTask({
  type: 'list',
  payload: z.object({ folder: z.string() }),
  handler: ({ folder }) => ({ files: [`${folder}/a`, `${folder}/b "x"`], 'odd-name': 7, in: { of: 'a word of CEL' } }),
})
const size = defineTask({
  type: 'size',
  payload: z.object({ file: z.string(), scale: z.number() }),
  handler: ({ file, scale }) => file.length * scale,
})
const sum = defineTask({ type: 'sum', handler: async (all: { sizes: number[]; note: unknown }) => all })
const fold = defineTask({ type: 'fold', handler: async (text: string) => text })

const measure = defineJob('measure', ({ input, stage, each, value, gate }: JobBuilder<{ folder: string }>) => {
  const listed = stage('list', list, { folder: input.folder })
  const sizes = each('size', size, listed.output.files, file => ({ file, scale: 1.5 }))
  const facts = value('facts', cel<unknown>`{"odd": ${listed.output['odd-name']}, "word": ${listed.output.in.of}}`)
  stage('sum', sum, { sizes: sizes.output, note: [facts.output, 'a "quote" and a \\ and é', null, true, 2] })
  const skipped = stage('never', fold, 'x', { when: cel`size(${sizes.output}) > ${5}`, after: [] })
  gate('review', { ask: 'Done?' }, { after: [skipped] })
})

test('a stage reads the input and the outputs of earlier stages, and fans out over a list', async t => {
  const { engine } = await fresh(t)
  await using _worker = startWorker(engine, [list, size, sum, fold], { drainSeconds: 2 })
  const job = await engine.submit(measure({ folder: 'in' }))
  const named = async (type: string) => {
    const { items } = await engine.jobTasks(job.id, { order: 'oldest' })
    return items.filter(task => task.type === type)
  }
  await eventually('the sum is done', async () => (await named('sum'))[0]?.state === 'succeeded')
  const { output } = (await named('sum'))[0]!
  assert.deepEqual(output, {
    sizes: [6, 12],
    note: [{ odd: 7, word: 'a word of CEL' }, 'a "quote" and a \\ and é', null, true, 2],
  })
  assert.deepEqual(
    (await named('size')).map(task => task.payload),
    [
      { file: 'in/a', scale: 1.5 },
      { file: 'in/b "x"', scale: 1.5 },
    ],
  )
  const { stages } = await engine.job(job.id)
  assert.equal(stages.find(stage => stage.name === 'never')?.state, 'skipped')
})

test('a stage follows the stage before it and those that it reads; with `after`, those that it names and reads', () => {
  const spec = measure({ folder: 'in' })
  const needs = parseJobSpec(spec).stages.map(stage => `${stage.name}: ${stage.needs.join(' ')}`)
  const expected = ['list: ', 'size: list', 'facts: size list', 'sum: facts size', 'never: size', 'review: never']
  assert.deepEqual(needs, expected)
  assert.deepEqual(spec.stages![0], { name: 'list', task: 'list', forEach: '[{"folder": input.folder}]' })
})

test('what is known when the job is defined is not computed when it runs', () => {
  const plain = defineJob(
    'plain',
    ({ stage, each }) => {
      stage('fold', fold, 'a "text"')
      each('sizes', size, ['a', 'b'], file => ({ file: file as unknown as string, scale: 2 }), { parallelism: 1 })
    },
    { priority: 5 },
  )
  const payloads = [
    { file: 'a', scale: 2 },
    { file: 'b', scale: 2 },
  ]
  assert.deepEqual(JSON.parse(JSON.stringify(plain())), {
    name: 'plain',
    priority: 5,
    stages: [
      { name: 'fold', task: 'fold', payload: 'a "text"' },
      { name: 'sizes', task: 'size', payloads, parallelism: 1 },
    ],
  })
})

test('a reference that is used as a text says how to write it', () => {
  const define = () => defineJob('j', ({ input, stage }: JobBuilder<string>) => void stage('a', fold, `${input}!`))
  assert.throws(define, /input is only known when the job runs: use cel`…`/)
  const text: Ref<string> = cel<string>`${'it'} + ${[1, { a: 'b' }]}`
  assert.throws(() => String(text), /\("it" \+ \[1, \{"a": "b"\}\]\)/)
})

test('submitting a job registers its tasks, so their schemas count before any worker has started', async t => {
  const { engine, server } = await served(t)
  await engine.submit({ ...measure({ folder: 'in' }), start: false })
  assert.deepEqual((await engine.taskType('list')).payloadSchema?.required, ['folder'])
  const client = connect({ server: server.url })
  const other = defineJob('other', ({ stage }) => void stage('a', list, { folder: 7 as unknown as string }))
  await assert.rejects(client.submit(other()), { code: 'PAYLOAD_REFUSED', message: /stages\.a\.payload.*folder/ })
})
