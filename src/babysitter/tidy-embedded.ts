import { vacuumWorn } from '../store/vacuum.ts'
import type { Chore } from './chore.ts'

/** The embedded store has no autovacuum: without this its tables would only grow. */
export const tidyEmbedded: Chore = {
  name: 'tidy-embedded',
  everySeconds: 60,
  async run({ sql }) {
    return { vacuumed: await vacuumWorn(sql) }
  },
}
