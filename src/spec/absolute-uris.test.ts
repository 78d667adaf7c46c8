import assert from 'node:assert/strict'
import { test } from 'node:test'
import { absoluteUri, withAbsoluteUris } from './absolute-uris.ts'
import type { JobSpec } from './job-spec.ts'

const here = 'file:///home/ann/jobs/'

test('a relative URI is read from the folder of its spec, and an absolute one stays as it is', () => {
  const cases: Record<string, string> = {
    'file://./texts': 'file:///home/ann/jobs/texts',
    'file://./texts/': 'file:///home/ann/jobs/texts/',
    'file://./a%20b/c#': 'file:///home/ann/jobs/a%20b/c#',
    'file://.': here,
    'file://./': here,
    'file://..': 'file:///home/ann/',
    'file://../texts': 'file:///home/ann/texts',
    'file://./../../x/./y': 'file:///home/x/y',
    'file://./../../../../x': 'file:///x',
    'file://./.hidden/..data': 'file:///home/ann/jobs/.hidden/..data',
    'file:///texts': 'file:///texts',
    's3://bucket/./texts': 's3://bucket/./texts',
    'file://.hidden/x': 'file://.hidden/x',
  }
  for (const [uri, absolute] of Object.entries(cases)) assert.equal(absoluteUri(uri, here), absolute)
  assert.equal(absoluteUri('file://./x', 'file:///'), 'file:///x')
})

test('in a spec the URIs of inputs and outputs are made absolute, wherever they stand, and nothing else is touched', () => {
  const spec: JobSpec = {
    name: 'file://./name',
    input: { uri: 'file://./input' },
    stages: [
      {
        name: 'a',
        run: { command: ['cat', 'file://./arg'], env: { uri: 'file://./env' } },
        inputs: {
          cross: [
            { doc: { uri: 'file://./docs', glob: '/*' }, model: { uri: 's3://bucket/model' } },
            { union: [{ one: { uri: 'file://../one' } }, { cross: [{ two: { uri: 'file://./two/' } }] }] },
          ],
        },
        outputs: 'file://./out',
      },
      { name: 'b', run: { command: ['cat'] }, inputs: { part: { stage: 'a' } }, metadata: { uri: 'file://./x' } },
    ],
  }
  const before = structuredClone(spec)
  const made = withAbsoluteUris(spec, here)
  assert.deepEqual(spec, before, 'what was given is left as it was')
  const [a, b] = made.stages!
  assert.deepEqual(a!.inputs, {
    cross: [
      { doc: { uri: 'file:///home/ann/jobs/docs', glob: '/*' }, model: { uri: 's3://bucket/model' } },
      {
        union: [{ one: { uri: 'file:///home/ann/one' } }, { cross: [{ two: { uri: 'file:///home/ann/jobs/two/' } }] }],
      },
    ],
  })
  assert.equal(a!.outputs, 'file:///home/ann/jobs/out')
  assert.deepEqual(a!.run, before.stages![0]!.run)
  assert.deepEqual(b, before.stages![1])
  assert.deepEqual([made.name, made.input], [before.name, before.input])
})

test('what is no spec is left as it is, for whoever checks it to say so', () => {
  const odd: unknown[] = [null, 5, [], {}, { stages: 5 }, { stages: [null, { inputs: 5, outputs: 5 }] }]
  odd.push({ stages: [{ inputs: { a: null, b: { uri: 5 }, cross: [5, null, { c: [] }] } }] })
  for (const spec of odd) assert.deepEqual(withAbsoluteUris(spec as JobSpec, here), spec, JSON.stringify(spec))
})
