import { goOn, tellFailed } from '../engine/redrive.ts'
import { idleRedrives } from '../store/redrive.ts'
import type { Chore } from './chore.ts'

/** Letters of one redrive in one look, so that others have their turn. */
const lettersPerLook = 5000

/** Goes on with redrives whose doer died, or whose caller's transaction has committed. */
export function redriveOn(olderThanSeconds = 3): Chore {
  return {
    name: 'redrive-on',
    everySeconds: 1,
    async run(context) {
      let redriven = 0
      let failed = 0
      for (const id of await idleRedrives(context.sql, olderThanSeconds, 10)) {
        try {
          const did = await goOn(context, context.sql, id, lettersPerLook)
          redriven += did.redriven
        } catch (error) {
          failed += 1
          await tellFailed(context, id, error)
        }
      }
      return { redriven, failed }
    },
  }
}
