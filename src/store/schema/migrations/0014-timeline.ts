/** The feed's generation also ends when a standby is promoted: the new primary has another timeline. */
export const timeline = `
alter table pawl.meta add column timeline text;
`
