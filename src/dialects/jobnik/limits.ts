/** The limits of the dialect and its differences from Jobnik, for docs/dialects.md. */
export const keys =
  'Producers need a key with the role `producer`, workers one with the role `worker`. To read jobs, stages and tasks, a ' +
  'worker also needs the role `viewer`. Pausing, aborting or deleting a job, changing its priority and opening a stage ' +
  'that is WAITING need `operator`. A worker may report only tasks that its own key has dequeued, and replace only their ' +
  'metadata.'

export const limits: readonly string[] = [
  'Jobnik has no words for `partial` and `skipped`: a job or stage that ended `partial`, and a skipped stage or task, are ' +
    'COMPLETED. A job that is compensating is IN_PROGRESS; an expired one is FAILED.',
  'A task that was cancelled, expired or dead-lettered is FAILED. So are tasks that had not started when their stage ' +
    'failed or their job was aborted, and tasks that are added later to a stage after a failed one. In the original they ' +
    'stay PENDING forever.',
  'A stage is WAITING if it is held or at its gate; the two cannot be told apart. If a gate needs several approvals, ' +
    'PENDING returns 200 from the first one on, and the stage stays WAITING until the last.',
  'Workers have no names and reports name no lease. The only fence is that the task is IN_PROGRESS: a worker that lost its ' +
    'task to another worker reports on the attempt of that worker.',
  'A dequeued task stays with its worker for 24 hours, as in the deployment of the original. The SDK sends no heartbeats, ' +
    'so with a shorter lease a task that takes longer would be given to a second worker. The price is that the tasks of a ' +
    'killed worker wait until the lease ends. If your tasks are short, choose a shorter lease: for the server with ' +
    '`--jobnik-lease-seconds` (`PAWL_JOBNIK_LEASE_SECONDS`), for one job with `leaseSeconds` in `POST /v1/jobs`, a field ' +
    'that the original does not have. The lease must be longer than the longest task. It applies to stages that are ' +
    'created afterwards.',
  'If you know that a worker is dead, `pawl worker lost <name>` ends its leases at once. The name of a worker is the name ' +
    'of its key, the name that it sends in the header `Pawl-Actor`, or both (`key/name`); without either it is `jobnik`. ' +
    'If a client disconnects before its dequeue is answered, the task is returned at once. If the answer is lost on its ' +
    'way, the task waits until the lease ends.',
  'A task whose lease has ended is given out again. The third time, it is FAILED. `attempts` counts failures only; the ' +
    'original also counts a lost lease. A task that was not submitted through Jobnik keeps its own lease, 60 seconds by ' +
    'default, but needs no heartbeats.',
  'A task that is IN_PROGRESS can always be reported, even while its job is PAUSED, ABORTED or FAILED. The original also ' +
    'accepts most of these reports, but returns 400 if the report would end a job whose status does not allow it, such as ' +
    'the last task of a PAUSED job. A task that is reported FAILED after its job has ended is FAILED, even if it has ' +
    'attempts left.',
  'A job without a `priority` is VERY_LOW. The document of the original says MEDIUM, but its server does not apply that ' +
    'default. The SDK sends no default priority.',
  'A job that was IN_PROGRESS when it was PAUSED is IN_PROGRESS after it is resumed, not PENDING.',
  'Aborting a job also ends its stages and open tasks. In the original they keep their status. What is COMPLETED stays ' +
    'COMPLETED.',
  'If a task is reported twice at the same time, the second report returns 200 if it has the same status, otherwise 409 ' +
    'TASK_STATUS_UPDATE_FAILED.',
  'Among tasks whose jobs have the same priority, those of the older stage come first. Within a stage, a RETRIED task ' +
    'comes after tasks that have not been tried.',
  'Every list is an array, or `{total, items}` with `page` or `page_size`. This includes the tasks and stages of a job. ' +
    'Without a page, a list of more than 10,000 items is refused.',
  'A request may add at most 10,000 tasks, with at most 1,000 attempts each. Replaced metadata is limited to 64 KiB. ' +
    '`tracestate` is stored for jobs; for stages and tasks it is accepted but not stored.',
  'Jobs, stages and tasks from other clients are shown too: data that is not an object becomes `{value}`, the priority is ' +
    'the nearest of the five, the type of a stage is its queue, and a standalone task has a `stageId` of zeros. Sealed ' +
    'jobs and stages accept no additions, like ended ones.',
  '`/liveness` and `/docs/api` need no key. `/service-metrics` needs a key that may read. It counts everything that is ' +
    'stored, as the original does; for a large store, prefer Pawl’s own `/metrics`. It names the 100 stage types with the ' +
    'most tasks and sums up the others as `_other`. The original’s metrics of its process and its requests are missing.',
  'Ended jobs are removed after 14 days, as everywhere in Pawl. The original keeps them until they are deleted.',
]
