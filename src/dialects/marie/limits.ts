/** What Marie's words cannot say here, and what is done otherwise than in the original: a paragraph for each. */
const text = `
Executors are Pawl’s workers: what they claim, renew and report goes over the worker protocol, with leases and
heartbeats. Etcd, gRPC, query planners and the stream of events are not spoken; \`/api/debug/reset-dags\`,
\`/api/deployment-status\` and \`/job/submit\` are not there.

\`/check\`, \`/\`, \`/status\` and \`/dry_run\` need no key, and are answered while the store answers. \`/api/debug\` shows
what Pawl knows too: queues, and how many jobs and DAGs are in which state. In \`/api/deployments\` the executors are the
workers that are connected, and the endpoints of one are the queues that it serves.

A job is submitted as the fields of a WorkInfo, as a command with its parameters, or as an \`invoke_action\` of command
\`job\` and action \`submit\`; the answer holds the envelope and the original’s \`parameters.job_id\`. \`policy\` and
\`job_level\` are not acted upon, and fields that are not known are passed over.

Keys come in the Authorization header only. An \`api_key\` in a body opens nothing, and is not kept with the job.

Ids may be any text of up to 150 characters but the name of a state. One that is no UUID stands for a UUID that is made of
it, by which Pawl’s own routes know the job or the DAG. An id is used once: sent again with the same body within 24 hours
it is the same job, else it is refused (\`DUPLICATE\`); it is free again 30 days after its job was removed.

In a DAG the priority and the SLA are those of the job that it began with. Its jobs are kept and deleted together, as any
job of Pawl’s: \`keep_until\` is for jobs that stand alone.

Dependencies must have been submitted before, in the same DAG. A job that comes when all others have ended well opens the
DAG again; one that comes when it has failed or was cancelled is refused.

A job whose dependencies were all SKIPPED is SKIPPED. When a job of a DAG ends badly, those that have not begun are
CANCELLED, and executors that have one are told to stop.

A stop is soft: an executor that has the job is told within a heartbeat, and may still complete it; until it answers, for
30 seconds at most, the job is ACTIVE. The original says of every job that it was stopped or deleted; here a terminal job
cannot be stopped, and another cannot be deleted (\`INVALID_STATE\`).

A cancelled job is resumed with \`POST /api/jobs/{id}/resume\`, for which the original has a Python call and no route. In
a DAG, the jobs that were cancelled with it come back too.

\`output_metadata\` is what Marie’s scheduler is told at the end of a job: the output of one that is COMPLETED (as \`result\`,
if it is no object), the \`reason\` of one that is SKIPPED or CANCELLED, and the last \`error\` with the number of
\`attempts\` of one that is FAILED or in RETRY. It is \`null\` where there is nothing to tell.

\`run_ttl_seconds\` is a setting of each job, and to run for longer counts as a failure. That an executor is lost counts
apart from failures: at the third time the job has FAILED.

A job without an SLA has none, where Marie’s gateway gives it one of four hours. The record of a job without a
\`keep_until\` is kept for two days after its end.

An SLA raises what waits within about five seconds. The priority that is shown stays what was sent, and a
\`start_after\` in the past is shown as the moment of the submission.

There are no pages: at most 1,000 jobs are listed, newest first. Where there are more, jobs with ids that are no UUIDs
come before others.

What Pawl has set aside as a dead letter is FAILED, what is blocked is CREATED, and what is claimed and has not begun is
ACTIVE.

The helper methods of its states are functions of \`pawl\` and \`pawl/client\` over Pawl’s own states: \`isTerminal\`,
\`isSuccessfulTerminal\`, \`wasExecuted\` (false for SKIPPED and CANCELLED alone) and \`terminalStates\`.

A worker’s slots are the handlers that it runs at once. One that serves several queues offers them to each, so the queues
may add up to more than the total; what it claims ahead of need is in \`used\`.

\`/api/capacity\` and \`/api/debug\` name at most 100 queues and sum up the others as \`_other\`. Capacity and deployments
cover the first 1,000 workers by name, and deployments at most 10,000 endpoints.
`

export const keys =
  'To submit and list jobs needs a key of role `producer`; to look only, `viewer`; to stop, resume or delete a job, ' +
  '`operator`. Executors are Pawl’s workers, with keys of role `worker`.'

export const limits: readonly string[] = text
  .trim()
  .split('\n\n')
  .map(paragraph => paragraph.replaceAll('\n', ' '))
