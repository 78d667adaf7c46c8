/** What Jobnik's words cannot say, and what is otherwise than there. */
export const keys =
  'Producers need a key of role `producer`, workers one of role `worker`. To read jobs, stages and tasks, a worker needs ' +
  'the role `viewer` as well. To pause, abort or delete a job, change its priority or open a stage that is WAITING needs ' +
  '`operator`. A worker may report only on tasks that its own key has dequeued, and replace the metadata of those only.'

export const limits: readonly string[] = [
  'A job or stage that ended `partial`, and a stage or task that was skipped, is COMPLETED: it has no word for them. A job ' +
    'that undoes what it did is IN_PROGRESS, one that expired FAILED.',
  'A task that was cancelled, expired or dead-lettered is FAILED. So are the tasks that nobody had begun when their stage ' +
    'failed or their job was aborted, and those that are posted later to a stage behind a failed one; in the original ' +
    'they stay PENDING for ever.',
  'A stage that is held is WAITING, as one at its gate; which of the two it is cannot be told. Where a gate asks for several ' +
    'approvers, PENDING is 200 from the first on, and the stage WAITING until the last.',
  'Its workers have no names and its reports name no lease. The fence is that the task is IN_PROGRESS: whoever lost a task ' +
    'that another has dequeued since reports the attempt of the other.',
  'A dequeued task stays with its worker for 24 hours, as in the deployment of the original. The SDK sends no heartbeats, ' +
    'so a shorter lease would give a task that takes longer to a second worker. The price: when a worker is killed, its ' +
    'tasks wait until the lease ends. If your tasks are short, choose a shorter lease: for the server with ' +
    '`--jobnik-lease-seconds` (`PAWL_JOBNIK_LEASE_SECONDS`), for one job with `leaseSeconds` in `POST /v1/jobs`, a field ' +
    'that the original does not have. It must be longer than the longest task, and counts for stages that are created ' +
    'from then on.',
  'If you know that a worker is dead, `pawl worker lost <name>` ends its leases at once. A worker has the name of its key, ' +
    'the name that it sends in the header `Pawl-Actor`, or both (`key/name`); without either, all workers are called ' +
    '`jobnik`. A dequeue whose client hangs up before it is answered gives its task back at once. If the answer is lost ' +
    'on its way, the task waits until the lease ends.',
  'A task whose lease has ended is given out again, and is FAILED when that happens for the third time. `attempts` counts ' +
    'failures only; the original counts such a loss as one. A task that was not submitted as Jobnik’s keeps the lease that ' +
    'it was submitted with, 60 seconds by default, but needs no heartbeats.',
  'A task that is IN_PROGRESS can always be reported, also while its job is PAUSED, ABORTED or FAILED. The original takes ' +
    'most of these reports too; it answers 400 to a report that would also end the job, if the status of the job does not ' +
    'allow that, as with the last task of a PAUSED job. A task that is reported FAILED after its job has ended is FAILED, even if it ' +
    'has attempts left.',
  'A job without a `priority` is VERY_LOW. The document of the original says MEDIUM, but its server does not apply that ' +
    'default. The SDK sends no priority of its own.',
  'A job that had begun before it was PAUSED is IN_PROGRESS again when it is resumed, and not PENDING.',
  'An abort ends the stages and the open tasks of a job too; in the original they stay as they are. What is COMPLETED stays so.',
  'Two reports of one task at once: the second is 200 if it says the same, else 409 TASK_STATUS_UPDATE_FAILED.',
  'Of tasks whose jobs have the same priority the one whose stage is older goes first. Within a stage a task that is ' +
    'RETRIED goes behind those that have not been tried.',
  'Lists are arrays, and `{total, items}` where `page` or `page_size` is given, of tasks and of a job’s stages too. One that ' +
    'would hold more than 10,000 is refused without a page.',
  'At most 10,000 tasks are added at once, with at most 1,000 attempts each; metadata is replaced by at most 64 KiB. A ' +
    '`tracestate` is kept with a job; of stages and tasks it is taken and not kept.',
  'Jobs, stages and tasks that were submitted otherwise are seen, too: data that is no object is `{value}`, a priority is ' +
    'the nearest of the five, the type of a stage is its queue, and a task of no stage has a `stageId` of zeros. One that is ' +
    'sealed takes nothing more, as if it had ended.',
  '`/liveness` and `/docs/api` need no key, `/service-metrics` needs one that may read. It counts everything that is kept, ' +
    'as the original does; a large store is better watched with `/metrics` of Pawl’s own. It names the 100 types of stages with the most ' +
    'tasks, and sums up the others as `_other`. The figures of the original ' +
    'about its process and its requests are not there.',
  'What has ended is removed after 14 days, as everywhere; the original keeps it until it is deleted.',
]
