/** Problems with the inputs and outputs of tasks, and with the places where they are stored. */
export const fileProblems = {
  FILES_UNFINISHED: {
    status: 409,
    means: 'The task cannot succeed: it registered a file that it has not uploaded.',
    hint: 'First report the file named in the details as uploaded or as an error.',
  },
  ARTIFACT_CONFLICT: {
    status: 409,
    means: 'Two tasks of a job wrote the same output file.',
    hint: 'Give each task its own path. The details name both tasks. Nothing was overwritten.',
  },
  ARTIFACT_CONTESTED: {
    status: 409,
    means: 'Another task of the job is already writing this output file.',
    hint: 'Give each task its own path. The details name both tasks. If the other task fails, a retry can write the file.',
  },
  OUTPUT_LOST: {
    status: 409,
    means: 'The stage can no longer succeed: an output of a succeeded task was lost before it was stored.',
    hint: 'Clone the job to create the files again. The details name the stage.',
  },
  ARTIFACT_UNKNOWN: {
    status: 404,
    means: 'This attempt has not registered the file.',
    hint: 'Register a file before you upload it.',
  },
  ARTIFACTS_DIFFER: {
    status: 409,
    means: 'This attempt has already registered a different set of output files.',
    hint: 'Register all files at once. If you repeat the request, send the same files.',
  },
  ARTIFACT_OUTSIDE: {
    status: 400,
    means: "The file is outside the task's output folder.",
    hint: "Use a URI below the task's outputs, and stage uploads below the folder of the attempt.",
  },
  FILES_OUTSIDE: {
    status: 403,
    means: 'Jobs are not allowed to use this folder or bucket.',
    hint: 'Use a folder below PAWL_FILE_ROOTS or a bucket in PAWL_S3_BUCKETS, or ask an administrator to add it there.',
  },
  FILE_NOT_FOUND: {
    status: 404,
    means: 'The file, folder or bucket does not exist.',
    hint: 'Check the spelling, and whether it has been removed.',
  },
  FILES_DENIED: {
    status: 403,
    means: 'Access to the file, folder or bucket was denied.',
    hint: 'Check its permissions and the credentials of this process, which may be wrong or expired.',
  },
  FILES_UNAVAILABLE: {
    status: 503,
    means: 'The file storage cannot be reached, or the operation failed.',
    hint: 'Pawl tried several times. Try again later.',
  },
  NAME_REFUSED: {
    status: 422,
    means: 'A file with this name cannot be copied between file systems and object stores.',
    hint: 'Rename the file or leave it out. The details give the reason.',
  },
  URI_INVALID: {
    status: 400,
    means: 'This is not a valid file URI.',
    hint: 'Write file:///folder/name or s3://bucket/folder/name, ending in / for a folder. Write # ? and % as %23 %3F and %25.',
  },
  DISK_FULL: {
    status: 507,
    means: 'There is no space left for the file.',
    hint: 'Free some space, or raise the quota. No partial file was kept.',
  },
  FILES_UNORDERED: {
    status: 422,
    means: 'This storage does not list names in byte order, so a listing cannot be continued.',
    hint: 'Use another bucket for inputs. S3 “directory buckets” have this limitation.',
  },
  INPUTS_INVALID: {
    status: 422,
    means: 'The inputs are invalid.',
    hint: 'The details list each error and where it is.',
  },
} as const
