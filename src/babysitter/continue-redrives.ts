import { continueRedrive, logRedriveFailure } from '../engine/tasks/redrive.ts'
import { findAbandonedRedrives } from '../store/tasks/redrive.ts'
import type { Chore } from './chore.ts'
import { fairBatches } from './fair-batches.ts'

/** Dead letters of one redrive per run, so that other redrives get their share. */
const lettersPerLook = 5000

/** Continues redrives whose process died, or whose caller's transaction has committed. */
export function continueRedrives(olderThanSeconds = 3): Chore {
  const each = fairBatches(10)
  return {
    name: 'redrive-on',
    everySeconds: 1,
    async run(context) {
      const { sql } = context
      let redriven = 0
      const { failures } = await each(
        context,
        (limit, except) => findAbandonedRedrives(sql, olderThanSeconds, limit, except),
        async id => {
          const did = await continueRedrive(context, sql, id, lettersPerLook)
          redriven += did.redriven
        },
      )
      for (const { item, error } of failures) await logRedriveFailure(context, item, error)
      return { redriven, failed: failures.length }
    },
  }
}
