import { reasonCodes } from '../../kernel/decide.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import { at, flag, id, list, orNull, text, view, whole, words } from '../shapes.ts'
import type { AttemptSpan, StageSpan, TimelineView, TroubleView } from './timeline.ts'

const taskState = words(...statesOf(taskLifecycle))

export const timelineViews = {
  Timeline: view<TimelineView>({
    stages: list(
      view<TimelineView['stages'][number]>({
        id,
        name: text,
        spans: list(view<StageSpan>({ state: words(...statesOf(stageLifecycle)), from: at, to: orNull(at) })),
      }),
    ),
    tasks: list(
      view<TimelineView['tasks'][number]>({
        id,
        stageId: id,
        state: taskState,
        createdAt: at,
        attempts: list(
          view<AttemptSpan>({
            epoch: whole,
            worker: orNull(text),
            claimedAt: at,
            startedAt: orNull(at),
            endedAt: orNull(at),
            outcome: orNull(taskState),
            cause: orNull(text),
          }),
        ),
      }),
    ),
    more: flag,
  }),
  Trouble: view<TroubleView>({
    state: taskState,
    reasonCode: orNull(words(...reasonCodes)),
    type: text,
    queue: text,
    message: text,
    count: whole,
    oldestAt: at,
    newestAt: at,
    taskId: id,
  }),
}
