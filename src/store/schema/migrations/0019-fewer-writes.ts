/**
 * Small jobs are inserted in the state in which they begin, and stages that start and end at once are written once: the
 * guards, which are derived from the lifecycles, allow it.
 */
export const fewerWrites = `
-- Only the guards have changed.
`
