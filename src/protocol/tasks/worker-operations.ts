import { type LostWorkerView, type WorkerQuery, type WorkerView, workerQueryFields } from '../admin/operate.ts'
import { bodyOf, type Call, type LoseWorkerCall, loseWorkerFields } from '../call-options.ts'
import { type ArtifactView, artifactsFields, type SaidArtifacts } from '../files/artifacts.ts'
import { control, page, post, read, report } from '../operation.ts'
import { list, ref } from '../shapes.ts'
import {
  type BeatOfTask,
  type ClaimedTask,
  type ClaimsRequest,
  claimFields,
  type HeartbeatAnswer,
  heartbeatFields,
  type OneOutcome,
  type SaidOf,
  type SyncAnswer,
  type SyncRequest,
  settleOneFields,
  syncFields,
} from './sync.ts'
import type { Page, TaskView } from './tasks.ts'

type Settle<Outcome extends OneOutcome> = (id: string, epoch: number, report?: SaidOf<Outcome>) => Promise<TaskView>

const answer = ref('Task')

export const workerOperations = {
  /** Claims tasks and reports on them in one round trip: the whole worker protocol. */
  sync: post<(request: SyncRequest, signal?: AbortSignal) => Promise<SyncAnswer>>(
    '/v1/workers/{worker}/sync',
    'work',
    ['body', 'signal'],
    {
      summary: 'Claim tasks and report on them in one round trip: the whole worker protocol.',
      body: syncFields,
      answer: ref('SyncAnswer'),
      queues: 'reported',
      isBulk: true,
      isRepeatable: false,
    },
  ),
  /** Claims one task or a few, without `sync`. A refusal is thrown. */
  claims: post<(request: ClaimsRequest, call?: Call, signal?: AbortSignal) => Promise<readonly ClaimedTask[]>>(
    '/v1/claims',
    'work',
    ['body', 'call', 'signal'],
    {
      summary: 'Claim one task or a few. For workers that run one task at a time.',
      body: claimFields,
      required: ['worker', 'queues'],
      answer: list(ref('ClaimedTask')),
      queues: 'named',
    },
  ),
  /** Reports that a task has started. */
  start: report<(id: string, epoch: number) => Promise<TaskView>>('/v1/tasks/{id}/start', {
    takes: ['id', 'epoch'],
    summary: 'Report that a task has started.',
    answer,
  }),
  /** Renews a lease. The answer says whether the task should stop. The first heartbeat also reports the start. */
  heartbeat: report<
    (id: string, epoch: number, report?: Pick<BeatOfTask, 'progress' | 'checkpoint'>) => Promise<HeartbeatAnswer>
  >('/v1/tasks/{id}/heartbeat', {
    summary: 'Renew a lease. The answer says whether the task should stop.',
    body: heartbeatFields,
    answer: ref('Heartbeat'),
  }),
  /** Reports that a task succeeded. */
  succeed: report<Settle<'succeeded'>>('/v1/tasks/{id}/succeed', {
    summary: 'Report that a task succeeded.',
    body: settleOneFields('succeeded'),
    answer,
    problems: ['FILES_UNFINISHED', 'SPAWN_REFUSED', 'ARTIFACT_CONFLICT', 'ARTIFACT_CONTESTED'],
  }),
  /** Reports that an attempt failed. */
  fail: report<Settle<'failed'>>('/v1/tasks/{id}/fail', {
    summary: 'Report that an attempt failed.',
    body: settleOneFields('failed'),
    answer,
  }),
  /** Reports that there was nothing to do. */
  skip: report<Settle<'skipped'>>('/v1/tasks/{id}/skip', {
    summary: 'Report that there was nothing to do.',
    body: settleOneFields('skipped'),
    answer,
  }),
  /** Gives a task back. The attempt is not charged. */
  release: report<Settle<'released'>>('/v1/tasks/{id}/release', {
    summary: 'Give a task back. The attempt is not charged.',
    body: settleOneFields('released'),
    answer,
  }),
  /** Reports that a task has stopped, as requested. */
  cancelled: report<Settle<'cancelled'>>('/v1/tasks/{id}/cancelled', {
    summary: 'Report that a task has stopped, as requested.',
    body: settleOneFields('cancelled'),
    answer,
  }),
  /** Reports the state of output files. Answers with all files that the attempt has registered. */
  reportArtifacts: report<(id: string, epoch: number, report: SaidArtifacts) => Promise<readonly ArtifactView[]>>(
    '/v1/tasks/{id}/artifacts',
    {
      summary: 'Report the state of output files of a task.',
      body: artifactsFields,
      required: ['artifacts'],
      answer: list(ref('Artifact')),
      problems: [
        'ARTIFACT_UNKNOWN',
        'ARTIFACT_OUTSIDE',
        'ARTIFACTS_DIFFER',
        'ARTIFACT_CONFLICT',
        'ARTIFACT_CONTESTED',
        'URI_INVALID',
        'NAME_REFUSED',
      ],
      isBulk: true,
    },
  ),
  /** Lists workers that contacted the server lately, by name. */
  workers: read<(query?: WorkerQuery) => Promise<Page<WorkerView>>>('/v1/workers', {
    summary: 'List workers that contacted the server lately, by name.',
    query: workerQueryFields,
    answer: page('Worker'),
  }),
  /** Declares a worker dead, by its name or the name of its pod: its leases end at once, as if they had expired. */
  loseWorker: control<(worker: string, call?: LoseWorkerCall) => Promise<LostWorkerView>>('/v1/workers/{id}/lost', {
    summary: 'Declare a worker dead, by its name or the name of its pod. Its leases end at once.',
    body: bodyOf(loseWorkerFields),
    answer: ref('LostWorker'),
    problems: ['WORKER_AMBIGUOUS'],
  }),
}
