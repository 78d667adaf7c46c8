/** Where the dialect differs from Falconeri, and what it cannot say. */
export const keys =
  'The user is `falconeri`, the password a key with the roles `producer` and `worker`, for the client and for the pods: ' +
  '`pawl key create --name pods --role producer --role worker`. A pod may report only on datums that its own key has ' +
  'reserved. A key for some queues must be for `command`.'

export const limits: readonly string[] = [
  'Its clients take no prefix and ask at port 8089: `pawl up --dialect falconeri --root --port 8089`.',
  'Who does the work: the datums of a job lie in a queue of its own, so no worker of Pawl’s comes upon them by chance. A ' +
    'server with `--kubernetes` starts `parallelism_spec.constant` pods, as falconerid does: with Pawl’s worker, in the ' +
    'pipeline’s image. Without it none is started, and whoever runs `falconeri-worker` gets datums, as many as come; both ' +
    'may work on one job. Workers with `--commands` alone never do.',
  'A pod sends no heartbeats, so its silence proves nothing: a datum stays with it for 24 hours, or for ' +
    '`PAWL_FALCONERI_LEASE_SECONDS` (at most seven days), whatever `job_timeout` says. A server with `--kubernetes` takes the ' +
    'datum back as soon as it sees that the pod is gone. Elsewhere say so yourself: `pawl worker lost POD`.',
  'Glob `/*` gives one datum for each file and each folder directly below the URI, as the documentation of Falconeri says. The ' +
    'running original lists recursively: one datum for each file, at any depth.',
  'A pod’s name stands for its lease: what it says counts for its own last attempt at a datum, and is 403 when that is over. ' +
    'Two processes under one name cannot be told apart, nor what one pod said of two of its attempts. A report that is ' +
    'sent again is answered as the first one was; the original says 403.',
  'Pods put files in their places by themselves, so the ledger is fenced and the bytes are not: one that was thought dead can ' +
    'still overwrite a file of the one that won.',
  'A datum in error with tries left is `ready` at once. A lost pod uses up a try, unless nobody could look at the time: so ' +
    '`attempted_run_count` may become more than the maximum.',
  'It has no words for stages, gates and pauses (such a job is `running`), for `partial` (`error`) and `skipped` (`done`).',
  'Why a job, and not a datum, is in trouble (a bucket that does not exist, a Kubernetes job that vanished or is not allowed) ' +
    'is among the `error_datums` of its description, where `falconeri job describe` prints it. No datum has the id of such an ' +
    'entry, and none is counted.',
  'Inputs are looked for once the job is there. `POST /jobs` waits for them, for ten seconds at most: datums may come later, ' +
    'and inputs that cannot be listed are a job in error, not a refusal.',
  'Folders are `file://` or `s3://`; `gs://` is refused. `worker_failure_policy` is taken only as null.',
  'All jobs can be seen; one that was not made from a pipeline has a `pipeline_spec` of null, and its tasks cannot be reserved. ' +
    'At most 1,000 jobs, and 1,000 datums that run or are in error, are shown.',
  'A datum may have 5,000 output files; it is done only when each was reported (else 409). Of `output` and `backtrace` the last ' +
    '65,536 characters are kept, of `error_message` the last 10,000. A request may have 32 MiB; the original takes 50.',
  '`retry` also takes the datums that were canceled because their job ended, as by `job_timeout`.',
  'What the original answers with 500 has codes of its own: 404 for what is not there, 400 or 422 for what cannot be, 409 for ' +
    'what does not fit now. There is no `/api-docs/openapi.json`.',
]
