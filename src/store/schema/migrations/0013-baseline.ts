/**
 * The schema of version 13, the oldest that a store can have. Later migrations build on it. States and their guards are
 * not defined here: lifecycle-sql.ts derives them from the kernel after the last migration.
 */
import { basics } from './baseline/basics.ts'
import { callerTables } from './baseline/caller-tables.ts'
import { feedTables } from './baseline/feed-tables.ts'
import { fileTables } from './baseline/file-tables.ts'
import { jobTables } from './baseline/job-tables.ts'
import { laneTables } from './baseline/lane-tables.ts'
import { taskTables } from './baseline/task-tables.ts'

export const baseline = [basics, laneTables, taskTables, jobTables, fileTables, feedTables, callerTables].join('')
