/** The limits of the dialect and its differences from Falconeri, for docs/dialects.md. */
export const keys =
  'The user is `falconeri`. The password is a key with the roles `producer` and `worker`, for the client and for the pods: ' +
  '`pawl key create --name pods --role producer --role worker`. A pod may report only datums that its own key has ' +
  'reserved. A key that is limited to some queues must include `command`.'

export const limits: readonly string[] = [
  'Falconeri’s clients use no path prefix and port 8089: `pawl up --dialect falconeri --root --port 8089`.',
  'The datums of a job are in a queue of their own, so Pawl’s other workers do not get them by accident. A server with ' +
    '`--kubernetes` starts `parallelism_spec.constant` pods, as falconerid does, with Pawl’s worker in the pipeline’s ' +
    'image. A server without it starts none; then every `falconeri-worker` that you run gets datums, however many there ' +
    'are. Both kinds may work on the same job. Workers started with `--commands` alone never get datums.',
  'A pod sends no heartbeats, so silence proves nothing: it keeps its datum for 24 hours, or for ' +
    '`PAWL_FALCONERI_LEASE_SECONDS` (at most seven days), whatever `job_timeout` says. A server with `--kubernetes` takes ' +
    'the datum back as soon as it sees that the pod is gone. Elsewhere, run `pawl worker lost POD`.',
  'The glob `/*` gives one datum for each file and folder directly below the URI, as Falconeri’s documentation says. The ' +
    'running original lists recursively: one datum for each file at any depth.',
  'The name of a pod stands for its lease: its reports count for its own last attempt at a datum, and return 403 after ' +
    'that attempt is over. Two processes with the same pod name cannot be told apart, and neither can reports of one pod on ' +
    'two of its attempts. A repeated report gets the same answer; the original returns 403.',
  'Pods upload files directly to their final URIs, so the ledger is fenced and the files are not: a pod that was presumed ' +
    'dead can still overwrite a file of the pod that won.',
  'A datum in error with tries left is `ready` at once. A lost pod uses up a try, unless no server could check the pods at ' +
    'that time, so `attempted_run_count` may exceed the maximum.',
  'Falconeri has no words for stages, gates and pauses (such a job is `running`), for `partial` (`error`) and for `skipped` ' +
    '(`done`).',
  'An error of the job itself (a bucket that does not exist, a Kubernetes job that vanished or is not allowed) is shown ' +
    'among the `error_datums` of its description, where `falconeri job describe` prints it. No datum has the id of such an ' +
    'entry, and the entry is not counted.',
  'Inputs are listed after the job is created. `POST /jobs` waits up to ten seconds for them. After that, datums may still ' +
    'appear later, and inputs that cannot be listed put the job in error instead of refusing the request.',
  'Folders are `file://` or `s3://`; `gs://` is refused. `worker_failure_policy` must be null.',
  'All jobs are shown. A job that was not made from a pipeline has a `pipeline_spec` of null, and its tasks cannot be ' +
    'reserved. At most 1,000 jobs are listed, and at most 1,000 datums that are running or in error.',
  'A datum may have 5,000 output files. It is done only when all of them were reported (otherwise 409). Only the last ' +
    '65,536 characters of `output` and `backtrace` are kept, and the last 10,000 of `error_message`. A request may have ' +
    '32 MiB; the original accepts 50.',
  '`retry` includes datums that were canceled because their job ended, for example by `job_timeout`.',
  'Where the original returns 500, Pawl returns 404 (not found), 400 or 422 (invalid) or 409 (not possible now). There is ' +
    'no `/api-docs/openapi.json`.',
]
