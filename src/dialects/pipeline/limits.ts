/** What these words cannot say, and what of the original is done otherwise. */
export const keys =
  'To start and follow runs needs a key of role `producer`; to follow only, `viewer`; to cancel, `operator`. A key for ' +
  'some queues must be for those of all stages of the pipeline. It goes in `X-API-Key` or as a bearer.'

export const limits: readonly string[] = `
A request may name a pipeline of the server’s settings: \`{"pipeline": "nightly", …}\`. Without a name it runs
\`default\`: the stages of the original, unless the settings have one of that name. The rest of the request is the
job’s input. For the stages of the original its fields are checked and filled in; for other pipelines only the two
switches are.

A job that is paused, compensating or stopping is \`running\`, one that expired is \`failed\`. Stages that have not
begun, and those without tasks (gates, values, the summary), are not in \`stage_progress\`; what undoes others is not
either.

\`skipped\` is a stage that was not run: its condition was false, its worker skipped it, or its job ended first. It
does not make the job \`partial\`. A stage that was running when its job was cancelled or timed out is shown as it
ended: \`completed\` or \`partial\` if its handler finished all the same, \`failed\` if it was interrupted.

Any number of runs may be under way at once.

A handler that throws has failed: these stages are tried once. One whose worker died is run again.

\`metrics\` and \`errors\` of a stage are what its handler returned (while it runs: the progress that it told). Of a
stage with several tasks, \`metrics\` counts them. Of a job with more than 200 tasks, only the latest 200 are looked
at for these.

\`errors\` of a job are those of all its stages, and, last, why it was cancelled or given up.

\`current_stage\` is the stage that began last; \`null\` before the first, and once the job is \`completed\` or
\`partial\`.

\`pipeline_run_summary_id\` is the id of the stage \`summary\`; what is in it \`GET /v1/stages/{id}\` of Pawl’s own
shows.

\`trace_id\` is that of the W3C trace of the request, or a new one: 32 hexadecimal digits. A job that came another way
without a trace has its own id there.

Times are UTC and end in \`Z\`.

The list shows every job there is, however it was submitted. \`total\` counts all that fit, not only those on the
page; \`running_count\` counts those that are \`running\`, on whichever server. A status that is none, and a limit
that is not from 1 to 1000, are refused (422).

A cancel tells the handler that runs and gives it 30 seconds; until it has stopped, the job is \`running\`. Asked
again meanwhile, it is \`{"cancelled": true}\` again.

A run of the default pipeline that has not ended two hours after its start was asked for is \`failed\`, with the error
“Job timed out or was orphaned”, also if no worker ever began it. A handler that runs is told, and has 30 seconds to
stop. Other pipelines set their own \`deadlineSeconds\`, or \`staleSeconds\` for a job that has come to a halt.

The stream tells each stage when it begins and when it has ended, once, also to whoever comes later; its data also
names the stage, its times and the trace. Every event has an id: with \`Last-Event-ID\` it goes on behind it, and
after \`job_complete\` the answer is 204. A job that is not there is a \`200\` with an \`error\` event, as in the
original.
`
  .trim()
  .split('\n\n')
  .map(limit => limit.replaceAll('\n', ' '))
