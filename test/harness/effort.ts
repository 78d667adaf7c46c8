/**
 * How often what is left to chance is tried. A run on somebody's machine tries a part of it, each time with other throws;
 * PAWL_TEST_EFFORT=1 tries all of it, more than that more.
 */
const effort = Number(process.env.PAWL_TEST_EFFORT ?? 0.4)

export const often = (times: number): number => Math.max(1, Math.ceil(times * effort))
