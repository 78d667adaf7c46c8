/** Problems of the database and of the embedded store's folder. */
export const storeProblems = {
  SCHEMA_NEWER: {
    status: 503,
    means: 'The database was migrated by a newer Pawl.',
    hint: 'Upgrade this process; nothing was changed.',
  },
  SCHEMA_TOO_OLD: {
    status: 409,
    means: 'The database was created by a Pawl from before the first release, and this version cannot migrate it.',
    hint: 'Nothing was changed. Use a new schema or data folder.',
  },
  MIGRATION_REFUSED: {
    status: 409,
    means: 'The schema must be migrated, and the database role may not do that.',
    hint: 'Run `pawl migrate` as the role that owns the schema. For a new store it needs CREATE on the database, or a schema of its own.',
  },
  STORE_UNAVAILABLE: {
    status: 503,
    means: 'The store cannot be reached.',
    hint: 'Nothing is lost; the request can be repeated with its Idempotency-Key.',
  },
  STORE_BUSY: {
    status: 503,
    means: 'Another transaction holds a row that this request needs, or the statement took too long.',
    hint: 'Nothing was changed; send the request again. `pawl doctor` names sessions that hold locks for long.',
  },
  STORE_FULL: {
    status: 503,
    means: 'The database has no disk space left, so nothing can be written.',
    hint: 'Nothing was changed; make room on the disk of the database, then send the request again.',
  },
  STORE_READ_ONLY: {
    status: 503,
    means: 'The database is read-only: a standby, or one that was set so.',
    hint: 'Nothing was changed; connect Pawl to the primary, or wait until a failover has ended.',
  },
  STORE_CROWDED: {
    status: 503,
    means: 'The database accepts no more connections.',
    hint: 'Nothing was changed; send the request again, and raise max_connections or use fewer connections.',
  },
  STORE_REFUSED: {
    status: 503,
    means: 'The database refuses the user that Pawl connects as.',
    hint: 'Check the user, password and privileges in the database URL; Pawl tries again.',
  },
  STORE_LOCKED: {
    status: 409,
    means: 'Another live process has this data folder open.',
    hint: 'The details name it. Stop it, choose another folder, or use a PostgreSQL server for several processes.',
  },
  SUBMIT_CUT_OFF: {
    status: 503,
    means: 'Nothing was written of this submission for ten minutes, so it was undone.',
    hint: 'Submit the job again: nothing of it is left.',
  },
} as const
