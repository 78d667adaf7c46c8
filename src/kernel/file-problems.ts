/** What can go wrong with files. */
export const fileProblems = {
  FILES_UNFINISHED: {
    status: 409,
    means: 'The task has registered a file and not uploaded it, so it cannot succeed.',
    hint: 'Report the file as uploaded or as an error first; the details name it.',
  },
  ARTIFACT_CONFLICT: {
    status: 409,
    means: 'Two tasks of a job put out the same file.',
    hint: 'Have each write its own path; the details name both tasks. Nothing was overwritten.',
  },
  ARTIFACT_CONTESTED: {
    status: 409,
    means: 'Another task of the job is just making this file.',
    hint: 'Have each write its own path; the details name both tasks. Should the other one fail, a retry gets it.',
  },
  OUTPUT_LOST: {
    status: 409,
    means:
      'A file of a task that succeeded was lost before it was in its place, so the stage cannot end well any more.',
    hint: 'Clone the job: a new one makes the files again. The details name the stage.',
  },
  ARTIFACT_UNKNOWN: {
    status: 404,
    means: 'The attempt has not registered this file.',
    hint: 'Register a file before it is uploaded.',
  },
  ARTIFACTS_DIFFER: {
    status: 409,
    means: 'The attempt has registered other files as all that it puts out.',
    hint: 'Register all of them at once; said again, they must be the same.',
  },
  ARTIFACT_OUTSIDE: {
    status: 400,
    means: "The file lies outside of the task's outputs.",
    hint: 'Its URI must be below the outputs of the task, and what is staged below the folder of its attempt.',
  },
  FILES_OUTSIDE: {
    status: 403,
    means: 'Jobs may not use this folder or bucket.',
    hint: 'Use a folder below those of PAWL_FILE_ROOTS or a bucket of PAWL_S3_BUCKETS, or have an administrator add it there.',
  },
  FILE_NOT_FOUND: {
    status: 404,
    means: 'There is no such file, folder or bucket.',
    hint: 'Check the spelling, and whether it was removed meanwhile.',
  },
  FILES_DENIED: {
    status: 403,
    means: 'The place where files lie does not let us in.',
    hint: 'Check its permissions, and the credentials of this process: they may be wrong or have expired.',
  },
  FILES_UNAVAILABLE: {
    status: 503,
    means: 'The place where files lie cannot be reached, or did not do what was asked.',
    hint: 'It was tried several times; try again later.',
  },
  NAME_REFUSED: {
    status: 422,
    means: 'A file of this name cannot be carried from one place to another.',
    hint: 'Rename it or leave it out; the details say what is wrong with it.',
  },
  URI_INVALID: {
    status: 400,
    means: 'This does not say where files lie.',
    hint: 'Write file:///folder/name or s3://bucket/folder/name, ending in / for a folder; # ? and % are %23 %3F and %25.',
  },
  DISK_FULL: {
    status: 507,
    means: 'There is no room left for the file.',
    hint: 'Make room, or raise the quota; nothing was half written.',
  },
  FILES_UNORDERED: {
    status: 422,
    means: 'This place does not list names in the order of their bytes, so a listing cannot be continued.',
    hint: 'Use another bucket for inputs; “directory buckets” of S3 are such places.',
  },
  INPUTS_INVALID: {
    status: 422,
    means: 'These inputs cannot be read as they are written.',
    hint: 'The details say what is wrong, and where.',
  },
} as const
