import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Problem } from '../kernel/problem.ts'
import type { Issue } from './faults.ts'
import type { JobSpec } from './job-spec.ts'
import { parseJobSpec } from './parse-job-spec.ts'
import { isPipeline, jobOfPipeline, withLocalRunner } from './pipeline.ts'
import { readDuration } from './pipeline-fields.ts'

const atom = { URI: 's3://example-bucket/books/', repo: 'books', glob: '/*' }

/** From Falconeri's guide: all required fields. */
/** In Falconeri's job template for every pipeline. */
const toleration = { key: 'fdy.io/falconeri', operator: 'Equal', value: 'worker', effect: 'NoExecute' }

const small = {
  pipeline: { name: 'book_words' },
  transform: { cmd: ['python3', '/extract_words.py'], image: 'somerepo/my_python_nlp' },
  parallelism_spec: { constant: 10 },
  resource_requests: { memory: '500Mi', cpu: 1.2 },
  input: { atom },
  egress: { URI: 's3://example-bucket/words/' },
}

/** All fields. */
const large = {
  ...small,
  transform: {
    ...small.transform,
    image_pull_policy: 'IfNotPresent',
    env: { VARNAME: 'value' },
    secrets: [
      { name: 's3', key: 'AWS_ACCESS_KEY_ID', env_var: 'AWS_ACCESS_KEY_ID' },
      { name: 's3', key: 'secret', env_var: 'AWS_SECRET_ACCESS_KEY', optional: false },
      { name: 's3', key: 'endpoint', env_var: 'AWS_ENDPOINT_URL', optional: true },
      { name: 'ssl', mount_path: '/ssl' },
    ],
    service_account: 'example-service',
  },
  datum_tries: 3,
  job_timeout: '5m',
  node_selector: { node_type: 'falconeri_worker' },
}

function issuesOf(spec: object): Issue[] {
  try {
    jobOfPipeline(spec as Record<string, unknown>)
  } catch (error) {
    assert.ok(error instanceof Problem && error.code === 'SPEC_INVALID', String(error))
    return error.details.issues as Issue[]
  }
  return []
}

const placesOf = (spec: object) => issuesOf(spec).map(({ at }) => at)

test('a pipeline becomes a job of one stage: its command in its image, at the paths that it knows', () => {
  assert.deepEqual(jobOfPipeline(small), {
    name: 'book-words',
    stages: [
      {
        name: 'transform',
        run: { command: ['python3', '/extract_words.py'], mount: '/pfs' },
        inputs: { books: { uri: 's3://example-bucket/books/', glob: '/*' } },
        outputs: 's3://example-bucket/words/',
        parallelism: 10,
        retry: { attempts: 1, delaySeconds: 0 },
        failFast: false,
        runner: {
          kubernetes: {
            image: 'somerepo/my_python_nlp',
            resources: { cpu: '1200m', memory: '500Mi' },
            tolerations: [toleration],
          },
        },
      },
    ],
  })
})

test('all that a pipeline says is carried over', () => {
  const { deadlineSeconds, stages } = jobOfPipeline(large)
  const { run, retry, runner } = stages![0]!
  assert.equal(deadlineSeconds, 300)
  assert.deepEqual(retry, { attempts: 3, delaySeconds: 0 })
  assert.deepEqual(run, {
    command: ['python3', '/extract_words.py'],
    env: { VARNAME: 'value' },
    secrets: {
      AWS_ACCESS_KEY_ID: { secret: 's3', key: 'AWS_ACCESS_KEY_ID' },
      AWS_SECRET_ACCESS_KEY: { secret: 's3', key: 'secret' },
      AWS_ENDPOINT_URL: { secret: 's3', key: 'endpoint', optional: true },
    },
    mount: '/pfs',
  })
  assert.deepEqual(runner, {
    kubernetes: {
      image: 'somerepo/my_python_nlp',
      imagePullPolicy: 'IfNotPresent',
      resources: { cpu: '1200m', memory: '500Mi' },
      nodeSelector: { node_type: 'falconeri_worker' },
      tolerations: [toleration],
      serviceAccount: 'example-service',
      secretFolders: { '/ssl': 'ssl' },
    },
  })
})

test('a pipeline may say that it says nothing, as Falconeri’s own client does', () => {
  const unsaid = { datum_tries: null, job_timeout: null, worker_failure_policy: null, node_selector: {} }
  const transform = { ...small.transform, image_pull_policy: null, service_account: null, env: {}, secrets: [] }
  assert.deepEqual(jobOfPipeline({ ...small, ...unsaid, transform }), jobOfPipeline(small))
  assert.deepEqual(placesOf({ ...small, worker_failure_policy: { maximum_counted_pod_failures: 4 } }), [
    'worker_failure_policy',
  ])
})

test('what a pipeline becomes can be submitted', () => {
  for (const spec of [small, large, { ...small, input: { pfs: { ...atom, glob: '/' } } }]) {
    const { stages } = parseJobSpec(jobOfPipeline(spec))
    assert.equal(stages[0]!.files?.runner?.kind, 'kubernetes')
  }
})

test('inputs are carried over however they are nested, atom and pfs alike', () => {
  const more = { URI: 's3://example-bucket/more-books', repo: 'more-books', glob: '/*' }
  const categories = { URI: 'file://./dewey', repo: 'dewey', glob: '/' }
  const input = { cross: [{ pfs: categories }, { union: [{ atom }, { cross: [{ atom: more }] }] }] }
  assert.deepEqual(jobOfPipeline({ ...small, input }).stages![0]!.inputs, {
    cross: [
      { dewey: { uri: 'file://./dewey', glob: '/' } },
      {
        union: [
          { books: { uri: 's3://example-bucket/books/', glob: '/*' } },
          { cross: [{ 'more-books': { uri: 's3://example-bucket/more-books', glob: '/*' } }] },
        ],
      },
    ],
  })
})

test('cores are counted as Kubernetes does', () => {
  const cases: [number | string, string][] = [
    [2, '2'],
    [0.1, '100m'],
    [1.1, '1100m'],
    [0.001, '1m'],
    [0.1234, '123m'],
    ['500m', '500m'],
  ]
  for (const [cpu, expected] of cases) {
    const { runner } = jobOfPipeline({ ...small, resource_requests: { cpu } }).stages![0]!
    const kubernetes = { image: 'somerepo/my_python_nlp', resources: { cpu: expected }, tolerations: [toleration] }
    assert.deepEqual(runner, { kubernetes })
  }
})

test('all that is wrong with a pipeline is told at once, by its place in there', () => {
  const spec = {
    pipline: {},
    transform: { cmd: [], image: 5, envs: {}, image_pull_policy: 'Sometimes', service_account: 'A b' },
    parallelism_spec: { coefficient: 2 },
    resource_requests: { memory: '500 megs', cpu: 0 },
    datum_tries: 0,
    job_timeout: 'soon',
    input: { atom: { URI: 'gs://bucket/books', repo: 'out', glob: '/**' } },
    egress: { uri: 's3://bucket' },
  }
  assert.deepEqual(placesOf(spec).toSorted(), [
    'datum_tries',
    'egress.URI',
    'egress.uri',
    'input.atom.URI',
    'input.atom.glob',
    'input.atom.repo',
    'job_timeout',
    'parallelism_spec.coefficient',
    'parallelism_spec.constant',
    'pipeline',
    'pipline',
    'resource_requests.cpu',
    'resource_requests.memory',
    'transform.cmd',
    'transform.envs',
    'transform.image',
    'transform.image_pull_policy',
    'transform.service_account',
  ])
  const meant = issuesOf(spec).flatMap(({ at, didYouMean }) => (didYouMean === undefined ? [] : [[at, didYouMean]]))
  assert.deepEqual(Object.fromEntries(meant), { pipline: 'pipeline', 'transform.envs': 'env', 'egress.uri': 'URI' })
})

test('a secret is one key as a variable, or all of it as files, and what it lacks is told', () => {
  const secrets = [
    { name: 'ssl', mount_path: 'ssl' },
    { name: 'ssl', mount_path: '/ssl/../etc' },
    { name: 'ssl', mount_path: '/ssl', key: 'id' },
    { name: 's3', key: 'id', env_var: 'AWS ID' },
    { name: 's3', key: 'id' },
    { name: 's3', key: 'id', env_var: 'ID', optional: 'no' },
  ]
  assert.deepEqual(placesOf({ ...small, transform: { ...small.transform, secrets } }).toSorted(), [
    'transform.secrets[0].mount_path',
    'transform.secrets[1].mount_path',
    'transform.secrets[2].key',
    'transform.secrets[3].env_var',
    'transform.secrets[4].env_var',
    'transform.secrets[5].optional',
  ])
})

test('files of secrets are for Kubernetes to mount, and a local worker says so', () => {
  const secrets = [{ name: 'ssl', mount_path: '/ssl' }]
  const job = jobOfPipeline({ ...small, transform: { ...small.transform, secrets } })
  assert.throws(() => withLocalRunner(job), { code: 'SPEC_INVALID', message: /only Kubernetes can mount/ })
})

test('inputs that cannot be are refused where they stand', () => {
  const cases: [unknown, string][] = [
    [null, 'input'],
    [{}, 'input'],
    [{ atom, pfs: atom }, 'input'],
    [{ crosss: [] }, 'input.crosss'],
    [{ cross: [] }, 'input.cross'],
    [
      { union: [{ atom }, { cross: [{ atom: { ...atom, branch: 'master' } }] }] },
      'input.union[1].cross[0].atom.branch',
    ],
    [{ union: [{ git: {} }] }, 'input.union[0].git'],
  ]
  for (const [input, at] of cases) assert.deepEqual(placesOf({ ...small, input }), [at], JSON.stringify(input))
  const deep = Array.from({ length: 12 }).reduce((inner: object) => ({ cross: [inner] }), { atom })
  assert.match(issuesOf({ ...small, input: deep })[0]!.why, /deeper/)
})

test('a pipeline is known by its shape, also one with faults, and a job is none', () => {
  for (const spec of [small, { pipeline: {} }, { transform: {} }]) assert.ok(isPipeline(spec), JSON.stringify(spec))
  const others = [null, [], 'pipeline', {}, { name: 'x', stages: [] }, { pipeline: 'x' }, { transform: {}, stages: [] }]
  for (const other of others) assert.ok(!isPipeline(other), JSON.stringify(other))
})

test('times are read as Falconeri reads them', () => {
  const cases: Record<string, number | undefined> = {
    '5m': 300,
    '1h30m': 5400,
    '1h 30min': 5400,
    '90 seconds': 90,
    '2days': 172_800,
    '1w': 604_800,
    '1month': 2_630_016,
    '1M 1m': 2_630_076,
    '2years': 63_115_200,
    '1y': 31_557_600,
    '1500ms': 1.5,
    '': undefined,
    '5': undefined,
    m: undefined,
    '5 fortnights': undefined,
    '5H': undefined,
    '5m,': undefined,
    '-5m': undefined,
    '1.5h': undefined,
  }
  for (const [text, seconds] of Object.entries(cases)) assert.equal(readDuration(text), seconds, text)
})

test('a job for Kubernetes becomes one for whatever workers there are, and nothing else of it changes', () => {
  const job = jobOfPipeline(small)
  const { runner: _, ...rest } = job.stages![0]!
  assert.deepEqual(withLocalRunner(job), { name: 'book-words', stages: [rest] })
  const other: JobSpec = { name: 'x', stages: [{ name: 'a', task: 't' }] }
  assert.deepEqual(withLocalRunner(other), other)
  assert.deepEqual(withLocalRunner({ name: 'x' }), { name: 'x' })
})
