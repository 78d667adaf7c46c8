import { artifactLifecycle } from './artifact.ts'
import { jobLifecycle } from './job.ts'
import type { Lifecycle } from './lifecycle.ts'
import { stageLifecycle } from './stage.ts'
import { taskLifecycle } from './task.ts'

/** All four lifecycles, for code and docs that are derived from every one of them. */
export const lifecycles: readonly Lifecycle[] = [taskLifecycle, stageLifecycle, jobLifecycle, artifactLifecycle]
