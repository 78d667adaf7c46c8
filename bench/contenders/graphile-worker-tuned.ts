import type { OpenContender } from '../contender.ts'
import { openGraphileWorker } from './graphile-worker.ts'

/** The fastest settings that we found: two pools in one process, and a local queue of four times the size. */
export const openContender: OpenContender = env => openGraphileWorker(env, { pools: 2, queue: 2000 })
