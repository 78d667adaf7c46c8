/**
 * How often what is left to chance is tried. A run on somebody's machine tries a part of it, each time with other throws;
 * PAWL_TEST_EFFORT=1 tries all of it, more than that more.
 */
const effort = Number(process.env.PAWL_TEST_EFFORT ?? 0.2)

/** Of what is tried one after the other, every so manieth is, beginning anywhere; with all effort, each. */
export const strideOf = (most: number): number => (effort >= 1 ? 1 : most)

export const often = (times: number): number => Math.max(1, Math.ceil(times * effort))

/** Of some that take long and are much alike, each has its day. */
export function isTurn(index: number, of: number): boolean {
  return effort >= 1 || Math.floor(Date.now() / 86_400_000) % of === index % of
}
