import type { ProblemCode } from '../../kernel/problem.ts'
import { type LostWorkerView, type WorkerQuery, type WorkerView, workerQueryFields } from '../admin/admin.ts'
import { bodyOf, type Call, type LoseWorkerCall, loseWorkerFields } from '../call-options.ts'
import { type ArtifactView, artifactsFields, type ReportedArtifacts } from '../files/artifacts.ts'
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
  type ReportOf,
  type SyncAnswer,
  type SyncRequest,
  settleOneFields,
  syncFields,
} from './sync.ts'
import type { Page, TaskView } from './tasks.ts'

const answer = ref('Task')

/** Reports the outcome of one task. */
const settle = <Outcome extends OneOutcome>(
  outcome: Outcome,
  path: string,
  summary: string,
  problems: readonly ProblemCode[] = [],
) =>
  report<(id: string, epoch: number, report?: ReportOf<Outcome>) => Promise<TaskView>>(path, {
    summary,
    body: settleOneFields(outcome),
    answer,
    problems,
  })

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
  succeed: settle('succeeded', '/v1/tasks/{id}/succeed', 'Report that a task succeeded.', [
    'FILES_UNFINISHED',
    'SPAWN_REFUSED',
    'ARTIFACT_CONFLICT',
    'ARTIFACT_CONTESTED',
  ]),
  /** Reports that an attempt failed. */
  fail: settle('failed', '/v1/tasks/{id}/fail', 'Report that an attempt failed.'),
  /** Reports that there was nothing to do. */
  skip: settle('skipped', '/v1/tasks/{id}/skip', 'Report that there was nothing to do.'),
  /** Gives a task back. The attempt is not charged. */
  release: settle('released', '/v1/tasks/{id}/release', 'Give a task back. The attempt is not charged.'),
  /** Reports that a task has stopped, as requested. */
  cancelled: settle('cancelled', '/v1/tasks/{id}/cancelled', 'Report that a task has stopped, as requested.'),
  /** Reports the state of output files. Answers with the files that the attempt has registered, up to 32 MiB. */
  reportArtifacts: report<(id: string, epoch: number, report: ReportedArtifacts) => Promise<readonly ArtifactView[]>>(
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
