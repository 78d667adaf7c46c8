import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { parse } from 'yaml'
import { evaluateForEach, evaluateWhen } from './conditions.ts'
import { jobSpecSchema } from './job-spec.ts'
import { parseJobSpec } from './parse-job-spec.ts'

const root = join(import.meta.dirname, '../../..')
const textOf = (name: string) => readFileSync(join(root, 'examples', name), 'utf8')

for (const name of readdirSync(join(root, 'examples')).filter(file => file.endsWith('.yaml'))) {
  test(`examples/${name} can be submitted as it is, and an editor marks nothing in it`, () => {
    assert.equal(`${parseJobSpec(textOf(name)).name}.yaml`, name)
    const allows = new Ajv2020({ strict: false }).compile(jobSpecSchema())
    assert.ok(allows(parse(textOf(name))), JSON.stringify(allows.errors))
  })
}

test('the pipeline leaves out what its input does not ask for, and optimization also without an evaluation', () => {
  const { stages, deadlineSeconds } = parseJobSpec(textOf('async-pipeline/pipeline.yaml'))
  const names = ['ingest', 'classify', 'neutralize', 'brief', 'summary', 'evaluation', 'optimization']
  assert.deepEqual(
    stages.map(({ name }) => name),
    names,
  )
  assert.ok(stages.every(({ onFailure, gives }) => onFailure === 'continue' || gives !== undefined))
  assert.equal(deadlineSeconds, 7200)

  const runs = (name: string, input: unknown, evaluation = 'succeeded') => {
    const { when } = stages.find(stage => stage.name === name)!
    return evaluateWhen(when!, { input, stages: { evaluation: { state: evaluation, output: null } } })
  }
  assert.equal(runs('evaluation', null), false)
  assert.equal(runs('evaluation', { enable_evaluation: false }), false)
  assert.equal(runs('evaluation', { enable_evaluation: true }), true)
  assert.equal(runs('optimization', { enable_auto_optimize: true }), true)
  assert.equal(runs('optimization', { enable_auto_optimize: true }, 'skipped'), false)
  assert.equal(runs('optimization', { enable_evaluation: true }), false)
})

test('the invoices publish the pages of an invoice, and nothing of a letter', () => {
  const { input, stages } = parseJobSpec(textOf('invoices.yaml'))
  const { when, forEach } = stages.at(-1)!
  const after = (output: unknown) => ({ input, stages: { classify: { state: 'succeeded', output } } })
  assert.equal(evaluateWhen(when!, after({ kind: 'letter' })), false)
  assert.equal(evaluateWhen(when!, after({ kind: 'invoice', pages: [1, 2] })), true)
  assert.deepEqual(evaluateForEach(forEach!, after({ kind: 'invoice', pages: [1, 2] })), [1, 2])
  assert.equal(evaluateForEach(stages[0]!.forEach!, after(null)).length, 3)
})
