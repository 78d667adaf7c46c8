/** Problems with the database and with the data folder of the embedded store. */
export const storeProblems = {
  SCHEMA_NEWER: {
    status: 503,
    means: 'The database was migrated by a newer version of Pawl.',
    hint: 'Upgrade this process. Nothing was changed.',
  },
  SCHEMA_TOO_OLD: {
    status: 409,
    means: 'The database was created by a version of Pawl before the first release and cannot be migrated.',
    hint: 'Nothing was changed. Use a new schema or data folder.',
  },
  MIGRATION_REFUSED: {
    status: 409,
    means: 'The schema must be migrated, but the database role has no permission to do it.',
    hint: 'Run `pawl migrate` as the role that owns the schema. To create a new store, the role needs CREATE on the database, or a schema that it owns.',
  },
  STORE_UNAVAILABLE: {
    status: 503,
    means: 'The store cannot be reached.',
    hint: 'Nothing is lost. Repeat the request; if it had an Idempotency-Key, with the same one.',
  },
  STORE_BUSY: {
    status: 503,
    means: 'Another transaction has locked a row that this request needs, or the statement took too long.',
    hint: 'Nothing was changed. Send the request again. `pawl doctor` lists connections that hold locks for a long time.',
  },
  STORE_FULL: {
    status: 503,
    means: 'The database has no disk space left, so nothing can be written.',
    hint: 'Nothing was changed. Free space on the disk of the database, then send the request again.',
  },
  STORE_READ_ONLY: {
    status: 503,
    means: 'The database is read-only: it is a standby, or it is configured as read-only.',
    hint: 'Nothing was changed. Connect Pawl to the primary, or wait until the failover has finished.',
  },
  STORE_CROWDED: {
    status: 503,
    means: 'The database accepts no more connections.',
    hint: 'Nothing was changed. Send the request again, and raise max_connections or use fewer connections.',
  },
  STORE_REFUSED: {
    status: 503,
    means: 'The database refuses the user that Pawl connects as.',
    hint: 'Check the user, password and privileges in the database URL. Pawl tries again.',
  },
  STORE_LOCKED: {
    status: 409,
    means: 'Another running process has this data folder open.',
    hint: 'Stop the process named in the details, choose another folder, or use a PostgreSQL server for several processes.',
  },
  SUBMIT_CUT_OFF: {
    status: 503,
    means: 'The submission stalled for ten minutes and was rolled back.',
    hint: 'Submit the job again. Nothing of the first submission was kept.',
  },
} as const
