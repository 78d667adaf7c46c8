/** What its words cannot say, and where the document leaves something open or contradicts itself. */
export const keys =
  'To enqueue needs a key of role `producer`; to claim and report, `worker`; to look at jobs, events and metrics, ' +
  '`viewer`; to cancel or dead-letter a job that somebody else holds, or to retry a dead letter, `operator`. A worker may ' +
  'report only on jobs that its own key has claimed, whichever epoch it names.'

export const limits: readonly string[] = [
  'Its jobs are our tasks. It has no words for our jobs and stages: a task whose stage has not opened is `queued`, ' +
    'though it can neither be claimed nor set aside yet. `succeeded` may also mean skipped, `failed` expired.',
  '“running → queued is forbidden” and “a lost lease returns to queued” are both in the document. A job does return to ' +
    '`queued` (retry, lost lease), and the next claim raises its `epoch`: within one epoch no job goes back. The event ' +
    'is `job_queued`, an addition, as is the way from the DLQ back to `queued`.',
  'Only a job that is `running` can succeed or fail, as in both tables: `start` it first, or send a heartbeat. Workers ' +
    'of Pawl may report without a start; then both transitions are made, with an event each. `cancel` is heard from ' +
    '`queued`, `assigned` and `running`, as in the second table.',
  'A job is held by a worker’s name, which the server binds to the epoch of the claim. Two workers of one name are one, ' +
    'unless they name the `epoch`, which fences each of them.',
  '`LEASE_LOST`: another has the job, or it was taken away (lease expired, cancelled, set aside). `INVALID_TRANSITION`: ' +
    'the job’s state does not take the request, though the asker has the job, ended it itself, or nobody ever had it.',
  'A lease ends at the earlier of `lease_sec` and two intervals of `heartbeat_sec` after the claim or the last ' +
    'heartbeat. A claim that names no `heartbeat_sec` has the one of the job’s type; without one, 30, the longest that the ' +
    'document allows: after 60 s of silence a job is orphaned, also with a longer lease. `lease.expires_at` is the end that counts.',
  'Every heartbeat renews the whole lease: it is both a `job_heartbeat` and a `job_lease_renewed`. These two are kept ' +
    'for a day; all other events as long as the job. A soft cancel that was only asked for has no event in its words.',
  'Failures and lost leases are counted apart, each up to `max_attempts` (3). Of losses before a start, ten in a ' +
    'row count as one. `attempts` are all claims of the round, so they may become more. With none left it is dead-lettered, or `failed` ' +
    'with `on_exhausted: failed`. The backoff is 0.5 s, doubled, up to 60 s, with jitter, unless `backoff` or the type says otherwise.',
  'Ended jobs are removed after 14 days; those in the DLQ stay until they are retried or deleted, or for as long as ' +
    '`keepDeadLetterSeconds` of their type says.',
  'A soft cancel of a job that nobody holds cancels it. Of one in hand it is told by `cancel_requested_at`; the worker ' +
    'ends with `cancel {worker, mode: hard}`, or as it likes, and after 30 s it is cancelled all the same.',
  'An `idempotency_key` (or the header `Idempotency-Key`) is kept for 24 hours, for enqueue, claim, cancel, dead_letter ' +
    'and retry. What a worker says of its lease needs none: said again it is answered as before.',
  '`trace_id` may be any text; one of W3C’s form goes on to tracing. In events it is in the `payload`.',
  '`job_compensated` is told of a job of ours, whose tasks are the jobs here: `job_id` is the id of that job, ' +
    '`GET /jobs/{id}/events` with it tells only this event, and `payload` counts the jobs that were undone.',
  '`GET /events` finds events by `type` and by time (`since`, `until`, both included). A page may be empty though there ' +
    'are more: go on until `next` is null. A start that was reported more than a minute late may be missing from a ' +
    'search by time.',
  'The document has no shapes of requests and answers: these are ours. Fields that are not known are passed over, for ' +
    'within a version clients may come to say more.',
  'A claim conflict is a claim that lost a race: the job that was first in line went to another claimer meanwhile. Such ' +
    'a claim usually wins the next job all the same.',
  'In `/metrics`, claim_conflicts and lease_renewals are of this process; the rest is of all, counted a moment later; ' +
    'latencies are of the last hour.',
]
