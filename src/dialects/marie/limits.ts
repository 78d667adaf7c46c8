/** The limits of the dialect and its differences from Marie's scheduler, for docs/dialects.md: one per paragraph. */
const text = `
Executors are Pawl’s workers: they claim, renew and report over the worker protocol, with leases and heartbeats. Etcd,
gRPC, query planners and the event stream are not supported; \`/api/debug/reset-dags\`, \`/api/deployment-status\` and
\`/job/submit\` do not exist.

\`/check\`, \`/\`, \`/status\` and \`/dry_run\` need no key, and respond while the store does. \`/api/debug\` shows only
what Pawl has too: the queues, and the number of jobs and DAGs by state. In \`/api/deployments\` the executors are the
connected workers, and their endpoints are the queues that they serve.

A job is submitted as the fields of a WorkInfo, as a command with its parameters, or as an \`invoke_action\` with the
command \`job\` and the action \`submit\`. The answer has the envelope and the original’s \`parameters.job_id\`. \`policy\`
and \`job_level\` have no effect, and unknown fields are ignored.

Keys are accepted in the Authorization header only. An \`api_key\` in a body is neither checked nor stored with the job.

An id may be any text of up to 150 characters, except the name of a state. An id that is not a UUID is mapped to one, by
which Pawl’s own routes know the job or the DAG. An id can be used once: sent again with the same body within 24 hours it
returns the same job, otherwise it is refused (\`DUPLICATE\`). It is free again 30 days after its job was removed.

A DAG has the priority and the SLA of the job that created it. Its jobs are kept and deleted together, like those of any
Pawl job: \`keep_until\` applies to standalone jobs only.

Dependencies must have been submitted before, in the same DAG. A job that is added after all others have succeeded opens
the DAG again; one that is added after the DAG failed or was cancelled is refused.

A job whose dependencies were all SKIPPED is SKIPPED. When a job of a DAG ends badly, those that have not started are
CANCELLED, and executors that hold one are asked to stop.

A stop is soft: the executor that holds the job learns of it within one heartbeat, and may still complete the job. Until
it responds, for at most 30 seconds, the job is ACTIVE. The original reports every job as stopped or deleted; here a
terminal job cannot be stopped, and a job that is not terminal cannot be deleted (\`INVALID_STATE\`).

A cancelled job is resumed with \`POST /api/jobs/{id}/resume\`; the original has a Python call for it and no route. In a
DAG, the jobs that were cancelled with it are resumed too.

\`output_metadata\` is what Marie’s scheduler stores at the end of a job: the output of a COMPLETED job (as \`result\` if
it is not an object), the \`reason\` of a SKIPPED or CANCELLED one, and the last \`error\` with the number of
\`attempts\` of a FAILED one or one in RETRY. Otherwise it is \`null\`.

\`run_ttl_seconds\` is a setting of each job; exceeding it counts as a failure. Lost executors are counted separately
from failures: the third time, the job is FAILED.

A job without an SLA has none; Marie’s gateway gives it an SLA of four hours. The record of a job without
\`keep_until\` is kept for two days after its end.

An SLA raises the priority of a waiting job within about five seconds. The priority that is shown stays the one that was
sent. A \`start_after\` in the past is shown as the time of submission.

There are no pages: at most 1,000 jobs are listed, newest first. If there are more, jobs whose ids are not UUIDs come
before others.

A dead-lettered task is FAILED, a blocked one is CREATED, and one that is claimed but has not started is ACTIVE.

The helper methods of Marie’s states are functions of \`pawl\` and \`pawl/client\` over Pawl’s own states: \`isTerminal\`,
\`isSuccessfulTerminal\`, \`wasExecuted\` (false only for SKIPPED and CANCELLED) and \`terminalStates\`.

The slots of a worker are the handlers that it runs at once. A worker with several queues offers its slots to each of
them, so the queues may add up to more than the total. Jobs that it claims in advance are included in \`used\`.

\`/api/capacity\` and \`/api/debug\` name at most 100 queues and sum up the others as \`_other\`. Capacity and deployments
cover the first 1,000 workers by name, and deployments at most 10,000 endpoints.
`

export const keys =
  'Submitting and listing jobs needs a key with the role `producer`; only reading, `viewer`; stopping, resuming or ' +
  'deleting a job, `operator`. Executors are Pawl’s workers, with keys of the role `worker`.'

export const limits: readonly string[] = text
  .trim()
  .split('\n\n')
  .map(paragraph => paragraph.replaceAll('\n', ' '))
