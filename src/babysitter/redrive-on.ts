import { goOn, tellFailed } from '../engine/tasks/redrive.ts'
import { findAbandonedRedrives } from '../store/tasks/redrive.ts'
import type { Chore } from './chore.ts'
import { takingTurns } from './turns.ts'

/** Letters of one redrive in one look, so that others have their turn. */
const lettersPerLook = 5000

/** Goes on with redrives whose doer died, or whose caller's transaction has committed. */
export function redriveOn(olderThanSeconds = 3): Chore {
  const each = takingTurns(10)
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
          const did = await goOn(context, sql, id, lettersPerLook)
          redriven += did.redriven
        },
      )
      for (const { item, error } of failures) await tellFailed(context, item, error)
      return { redriven, failed: failures.length }
    },
  }
}
