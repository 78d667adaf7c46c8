/** The limits of the dialect and its differences from the original, for docs/dialects.md. */
export const keys =
  'Starting runs and following them needs a key with the role `producer`; only following them, `viewer`; cancelling, ' +
  '`operator`. A key that is limited to some queues must include those of all stages of the pipeline. Send the key in ' +
  '`X-API-Key` or as a bearer token.'

export const limits: readonly string[] = `
A request may name a pipeline from the server’s settings: \`{"pipeline": "nightly", …}\`. Without a name it runs
\`default\`: the stages of the original, unless the settings have a pipeline with that name. The rest of the request is
the job’s input. For the stages of the original, its fields are validated and defaults filled in; for other pipelines
only the two switches are.

A job that is paused, compensating or stopping is \`running\`; an expired one is \`failed\`. \`stage_progress\` leaves
out stages that have not started, stages without tasks (gates, values, the summary) and compensations.

\`skipped\` is a stage that did not run: its condition was false, its worker skipped it, or its job ended first. It
does not make the job \`partial\`. A stage that was running when its job was cancelled or timed out is shown as it
ended: \`completed\` or \`partial\` if its handler still finished, \`failed\` if it was interrupted.

Any number of runs may be in progress at the same time.

A handler that throws has failed: these stages are not retried. A handler whose worker died is run again.

\`metrics\` and \`errors\` of a stage are what its handler returned; while it runs, the progress that it reported. For a
stage with several tasks, \`metrics\` counts the tasks. For a job with more than 200 tasks, only the latest 200 are
read for these.

\`errors\` of a job are those of all its stages, followed by the reason why it was cancelled or ended early.

\`current_stage\` is the stage that started last. It is \`null\` before the first one, and once the job is \`completed\`
or \`partial\`.

\`pipeline_run_summary_id\` is the id of the stage \`summary\`. Pawl’s own \`GET /v1/stages/{id}\` shows its content.

\`trace_id\` is the trace id of the request’s W3C trace, or a new one: 32 hexadecimal digits. For a job from another
client without a trace it is the id of the job.

Timestamps are in UTC and end in \`Z\`.

The list shows every job, however it was submitted. \`total\` counts all jobs that match, not only those on the page;
\`running_count\` counts the \`running\` jobs of all servers. An unknown status, or a limit that is not between 1 and
1000, is refused (422).

A cancel asks the running handler to stop and gives it 30 seconds. Until it has stopped, the job is \`running\`, and
another cancel also returns \`{"cancelled": true}\`.

A run of the default pipeline that has not ended two hours after it was requested is \`failed\`, with the error “Job
timed out or was orphaned”, even if no worker ever started it. A running handler is asked to stop and has 30 seconds.
Other pipelines set their own \`deadlineSeconds\`, or \`staleSeconds\` for a job without progress.

The stream sends one event when a stage starts and one when it ends, also to clients that connect later. The data also
has the name of the stage, its times and the trace. Every event has an id: with \`Last-Event-ID\` the stream continues
after that event, and after \`job_complete\` the answer is 204. For a job that does not exist, the answer is \`200\` with
an \`error\` event, as in the original.
`
  .trim()
  .split('\n\n')
  .map(limit => limit.replaceAll('\n', ' '))
