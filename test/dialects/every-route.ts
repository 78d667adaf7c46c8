/**
 * Every route of every dialect, with a request that succeeds under an admin key, and the permissions that it needs. All
 * entities of the requests are in the queue `theirs`, in `command`, or in the queues of the default pipeline.
 */
import type { Permission } from '../../src/kernel/role.ts'
import type { DialectName } from '../../src/protocol/dialects.ts'
import {
  open,
  operating,
  produce,
  producing,
  type Recipe,
  reading,
  type Send,
  type Table,
  type World,
  well,
  work,
  worksAndReads,
} from './route-recipe.ts'

export const theirQueues = [
  'theirs',
  'command',
  ...['ingest', 'classify', 'neutralize', 'brief', 'evaluation', 'optimization'],
]

async function jobnikStage({ admin }: World, more: object = {}) {
  const job = await well(admin, 'jobnik', 'POST', '/v1/jobs', { name: 'job', data: {} })
  const fields = { type: 'theirs', data: {}, ...more }
  const stage = await well(admin, 'jobnik', 'POST', `/v1/jobs/${job.id}/stage`, fields)
  const [task] = await well<{ id: string }[]>(admin, 'jobnik', 'POST', `/v1/stages/${stage.id}/tasks`, [{ data: {} }])
  return { job: { id: job.id }, stage: { id: stage.id }, task: { id: task!.id } }
}

type Part = 'job' | 'stage' | 'task'
const ofJobnik =
  (part: Part, body?: unknown): Recipe['prepare'] =>
  async world => ({ params: (await jobnikStage(world))[part], body })

/** Claims one of the due tasks. */
async function dequeued(world: World, claimer: Send) {
  await jobnikStage(world)
  return well(claimer, 'jobnik', 'PATCH', '/v1/stages/theirs/tasks/dequeue')
}

const heldOfJobnik =
  (body: unknown): Recipe['prepare'] =>
  async (world, claimer) => ({ params: { id: (await dequeued(world, claimer)).id }, body })

const annotating = (part: Part): readonly Recipe[] => [
  { needs: [['operate'], ['produce']], scoped: true, prepare: ofJobnik(part, { a: 1 }) },
]

const jobnik: Table = {
  'GET /v1/jobs': reading(),
  'POST /v1/jobs': [{ needs: produce, prepare: async () => ({ body: { name: 'job', data: {} } }) }],
  'GET /v1/jobs/{id}': reading(ofJobnik('job')),
  'DELETE /v1/jobs/{id}': operating(async world => {
    const { job } = await jobnikStage(world)
    await world.engine.cancelJob(job.id)
    return { params: job }
  }),
  'PATCH /v1/jobs/{id}/user-metadata': annotating('job'),
  'PATCH /v1/jobs/{id}/priority': operating(ofJobnik('job', { priority: 'HIGH' })),
  'PUT /v1/jobs/{id}/status': operating(ofJobnik('job', { status: 'PAUSED' })),
  'GET /v1/jobs/{id}/stages': reading(ofJobnik('job')),
  'POST /v1/jobs/{id}/stage': producing(ofJobnik('job', { type: 'theirs', data: {} })),
  'GET /v1/stages': reading(),
  'GET /v1/stages/{id}': reading(ofJobnik('stage')),
  'GET /v1/stages/{id}/summary': reading(ofJobnik('stage')),
  'PATCH /v1/stages/{id}/user-metadata': annotating('stage'),
  'PUT /v1/stages/{id}/status': operating(async world => {
    const { stage } = await jobnikStage(world, { startAsWaiting: true })
    return { params: stage, body: { status: 'PENDING' } }
  }),
  'GET /v1/stages/{id}/tasks': reading(ofJobnik('stage')),
  'POST /v1/stages/{id}/tasks': producing(ofJobnik('stage', [{ data: {} }])),
  'PATCH /v1/stages/{type}/tasks/dequeue': [
    {
      needs: work,
      scoped: true,
      async prepare(world) {
        await jobnikStage(world)
        return { params: { type: 'theirs' } }
      },
    },
  ],
  'GET /v1/tasks': reading(),
  'GET /v1/tasks/{id}': reading(ofJobnik('task')),
  'PATCH /v1/tasks/{id}/user-metadata': [
    { needs: [['operate'], ['work']], scoped: true, held: true, prepare: heldOfJobnik({ a: 1 }) },
  ],
  'PUT /v1/tasks/{id}/status': [
    { needs: work, scoped: true, held: true, prepare: heldOfJobnik({ status: 'COMPLETED' }) },
  ],
  'GET /liveness': open(),
  'GET /docs/api': open(),
  'GET /docs/api.json': open(),
  'GET /service-metrics': reading(),
}

const pod = { pod_name: 'pod' }
const done = { ...pod, datum: { status: 'done', output: '' } }
const failed = { ...pod, datum: { status: 'error', output: '', error_message: 'no', backtrace: '' } }

async function pipelineRun({ admin, spec }: World) {
  const { job } = await well<{ job: { id: string; job_name: string } }>(admin, 'falconeri', 'POST', '/jobs', {
    job: spec(),
  })
  return job
}

async function reserved(world: World, claimer: Send) {
  const job = await pipelineRun(world)
  const path = `/jobs/${job.id}/reserve_next_datum`
  const { datum } = await well<{ datum: { id: string } }>(claimer, 'falconeri', 'POST', path, {
    ...pod,
    node_name: 'n',
  })
  return { job, datum }
}

const ofDatum = (needs: Recipe['needs'], body: unknown): readonly Recipe[] => [
  {
    needs,
    scoped: true,
    held: true,
    prepare: async (world, claimer) => ({ params: { id: (await reserved(world, claimer)).datum.id }, body }),
  },
]
const ofRun: Recipe['prepare'] = async world => ({ params: { id: (await pipelineRun(world)).id } })

const falconeri: Table = {
  'GET /version': open(),
  'POST /jobs': producing(async ({ spec }) => ({ body: { job: spec() } })),
  'GET /jobs': reading(async world => ({ query: `?job_name=${(await pipelineRun(world)).job_name}` })),
  'GET /jobs/list': reading(),
  'GET /jobs/{id}': reading(ofRun),
  'GET /jobs/{id}/describe': reading(ofRun),
  'POST /jobs/{id}/retry': producing(async world => {
    const { job, datum } = await reserved(world, world.admin)
    await well(world.admin, 'falconeri', 'PATCH', `/datums/${datum.id}`, failed)
    return { params: { id: job.id } }
  }),
  'POST /jobs/{id}/reserve_next_datum': [
    {
      needs: worksAndReads,
      scoped: true,
      prepare: async world => ({ ...(await ofRun(world, world.admin)), body: { ...pod, node_name: 'n' } }),
    },
  ],
  'PATCH /datums/{id}': ofDatum(worksAndReads, done),
  'GET /datums/{id}/describe': reading(async world => ({
    params: { id: (await reserved(world, world.admin)).datum.id },
  })),
  'POST /datums/{id}/output_files': ofDatum(worksAndReads, { ...pod, output_files: [] }),
  'PATCH /datums/{id}/output_files': ofDatum(worksAndReads, { ...pod, output_files: [] }),
}

async function invoked({ admin }: World) {
  const { result } = await well<{ result: { id: string } }>(admin, 'marie', 'POST', '/api/v1/invoke', {
    name: 'theirs',
  })
  return { id: result.id }
}

const ofMarie: Recipe['prepare'] = async world => ({ params: await invoked(world) })
const stopped: Recipe['prepare'] = async world => {
  const params = await invoked(world)
  await world.engine.cancel(params.id)
  return { params }
}

const marie: Table = {
  'POST /api/v1/invoke': [
    ...producing(async () => ({ body: { name: 'theirs' } })),
    ...producing(async () => ({ body: { name: 'theirs', dag_id: crypto.randomUUID() } })),
  ],
  'GET /api/jobs': reading(),
  'GET /api/jobs/{id}': reading(ofMarie),
  'GET /api/jobs/{id}/stop': operating(ofMarie),
  'POST /api/jobs/{id}/stop': operating(ofMarie),
  'POST /api/jobs/{id}/resume': operating(stopped),
  'DELETE /api/jobs/{id}': operating(stopped),
  'GET /api/capacity': reading(),
  'GET /check': open(),
  'GET /': open(),
  'GET /status': open(),
  'GET /dry_run': open(),
  'GET /api/debug': reading(),
  'GET /api/deployments': reading(),
  'GET /api/deployment-nodes': reading(),
}

const started: Recipe['prepare'] = async ({ admin }) => {
  const path = '/v1/pipeline/scheduled-run-async'
  const { job_id } = await well<{ job_id: string }>(admin, 'pipeline', 'POST', path, {})
  return { params: { id: job_id } }
}

const pipeline: Table = {
  'POST /v1/pipeline/scheduled-run-async': producing(async () => ({ body: {} })),
  'GET /v1/pipeline/jobs': reading(),
  'GET /v1/pipeline/jobs/{id}': reading(started),
  // The stream ends, because the job has ended.
  'GET /v1/pipeline/jobs/{id}/stream': reading(async world => {
    const asked = await started(world, world.admin)
    await world.engine.cancelJob(asked.params!.id!)
    return asked
  }),
  'POST /v1/pipeline/jobs/{id}/cancel': operating(started),
}

const worker = 'w'

async function claimed({ admin }: World, claimer: Send) {
  await well(admin, 'jsm', 'POST', '/jobs', { type: 'theirs' })
  return well(claimer, 'jsm', 'POST', '/jobs/claim', { worker, types: ['theirs'] })
}

const ofClaim =
  (body: object = {}, begin = false): Recipe['prepare'] =>
  async (world, claimer) => {
    const { id } = await claimed(world, claimer)
    if (begin) await well(claimer, 'jsm', 'POST', `/jobs/${id}/start`, { worker })
    return { params: { id }, body: { worker, ...body } }
  }

const holding = (prepare: Recipe['prepare']): readonly Recipe[] => [{ needs: work, scoped: true, held: true, prepare }]
const queued =
  (body?: unknown): Recipe['prepare'] =>
  async ({ admin }) => ({ params: { id: (await well(admin, 'jsm', 'POST', '/jobs', { type: 'theirs' })).id }, body })
const aside = { reason_code: 'policy_violation' }

const jsm: Table = {
  'POST /jobs': producing(async () => ({ body: { type: 'theirs' } })),
  'POST /jobs/claim': [{ needs: work, scoped: true, prepare: async () => ({ body: { worker, types: ['theirs'] } }) }],
  'POST /jobs/{id}/start': holding(ofClaim()),
  'POST /jobs/{id}/heartbeat': holding(ofClaim({}, true)),
  'POST /jobs/{id}/succeed': [
    ...holding(ofClaim({}, true)),
    // Knowing the epoch is not enough: the key must have claimed the task.
    ...holding(async (world, claimer) => {
      const asked = await ofClaim({}, true)(world, claimer)
      const { epoch } = await world.engine.task(asked.params!.id!)
      return { ...asked, body: { worker, epoch } }
    }),
  ],
  // Fails permanently. A retried task could go to a key that held it before, which would be refused with LEASE_LOST.
  'POST /jobs/{id}/fail': holding(ofClaim({ error_class: 'PermanentError', message: 'no' }, true)),
  'POST /jobs/{id}/cancel': [...operating(queued({ mode: 'hard' })), ...holding(ofClaim({ mode: 'hard' }, true))],
  'POST /jobs/{id}/dead_letter': [...operating(queued(aside)), ...holding(ofClaim(aside, true))],
  'GET /jobs/{id}': reading(queued()),
  'GET /jobs/{id}/events': reading(queued()),
  'GET /events': reading(),
  'GET /dlq': reading(),
  'POST /dlq/{id}/retry': operating(async world => {
    const { params } = await queued()(world, world.admin)
    await world.engine.deadLetter(params!.id!, { reasonCode: 'policy_violation' })
    return { params: params!, body: {} }
  }),
  'GET /metrics': reading(),
}

/** How a worker of each dialect claims, if it has workers, and the permissions that it needs. */
export const claimNeeds: Readonly<Partial<Record<DialectName, readonly Permission[]>>> = {
  jobnik: ['work'],
  falconeri: ['work', 'read'],
  jsm: ['work'],
}

export const recipes: Readonly<Record<DialectName, Table>> = { marie, jobnik, falconeri, pipeline, jsm }
