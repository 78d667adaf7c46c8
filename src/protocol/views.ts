/** The schemas of the OpenAPI document, by name. */
import type { Schema } from '../schema/check.ts'
import { keyView, madeKey, me } from './admin/keys.ts'
import { examination, lostWorkerView, queueView, workerView } from './admin/operate.ts'
import { statsView } from './admin/stats.ts'
import { artifactView, lineage, stageFile } from './files/artifacts.ts'
import { jobView, jobWithAdded, stageView, stageWithAdded, taskCounts } from './jobs/jobs.ts'
import { timelineView, troubleView } from './jobs/timeline.ts'
import { redriveAnswer, redriveProgress } from './tasks/dead-letters.ts'
import { logLineView } from './tasks/logs.ts'
import { claimedTask, heartbeatAnswer, syncAnswer } from './tasks/sync.ts'
import { attemptView, eventView, feedEvent, feedPage, queuedTask, taskView } from './tasks/tasks.ts'

export const views = {
  Task: taskView,
  QueuedTask: queuedTask,
  Event: eventView,
  FeedEvent: feedEvent,
  TaskCounts: taskCounts,
  Attempt: attemptView,
  Stage: stageView,
  StageWithAdded: stageWithAdded,
  Job: jobView,
  JobWithAdded: jobWithAdded,
  StageFile: stageFile,
  Artifact: artifactView,
  Lineage: lineage,
  Stats: statsView,
  Queue: queueView,
  Worker: workerView,
  LostWorker: lostWorkerView,
  Examination: examination,
  Me: me,
  Key: keyView,
  MadeKey: madeKey,
  Timeline: timelineView,
  Trouble: troubleView,
  LogLine: logLineView,
  RedriveProgress: redriveProgress,
  Heartbeat: heartbeatAnswer,
  Redrive: redriveAnswer,
  ClaimedTask: claimedTask,
  SyncAnswer: syncAnswer,
  FeedPage: feedPage,
} satisfies Record<string, Schema>
