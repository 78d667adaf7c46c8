/** The guards accept the frequent moves in their triggers, and all others in their functions. */
export const shortGuards = `
-- Only the guards have changed.
`
