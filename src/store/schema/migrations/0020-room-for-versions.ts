/** All versions of a task's row fit on its page, even if none of them may be removed yet. */
export const roomForVersions = `
-- An old snapshot keeps the rows of the enqueue, the claim and the report at the same time, each longer than the one
-- before. If the third did not fit on the page, the report would also write to every index of the table.
alter table pawl.task set (fillfactor = 25);
`
