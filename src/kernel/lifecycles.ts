import { artifactLifecycle } from './artifact.ts'
import { jobLifecycle } from './job.ts'
import type { Lifecycle } from './lifecycle.ts'
import { stageLifecycle } from './stage.ts'
import { taskLifecycle } from './task.ts'

/** All four, for whoever derives something from every one of them. */
export const lifecycles: readonly Lifecycle[] = [taskLifecycle, stageLifecycle, jobLifecycle, artifactLifecycle]
