/** The limits of the dialect, and how it resolves what the document leaves open or contradicts, for docs/dialects.md. */
export const keys =
  'Enqueueing needs a key with the role `producer`; claiming and reporting, `worker`; reading jobs, events and metrics, ' +
  '`viewer`. Cancelling or dead-lettering a job that another worker holds, and retrying a dead letter, need `operator`. A ' +
  'worker may report only jobs that its own key has claimed, whatever epoch it sends.'

export const limits: readonly string[] = [
  'The document’s jobs are Pawl’s tasks. It has no words for Pawl’s jobs and stages: a task whose stage has not opened is ' +
    '`queued`, although it can be neither claimed nor dead-lettered yet. `succeeded` includes skipped, `failed` includes ' +
    'expired.',
  'The document says both “running → queued is forbidden” and “a lost lease returns to queued”. Here a job does return to ' +
    '`queued` (retry, lost lease), and the next claim increases its `epoch`: within one epoch no job moves back. The event ' +
    'is `job_queued`, an addition to the document, as is the way from the DLQ back to `queued`.',
  'Only a `running` job can succeed or fail, as in both tables: first send `start` or a heartbeat. Pawl’s own workers may ' +
    'report without a start; then both transitions are made, with one event each. `cancel` is accepted in `queued`, ' +
    '`assigned` and `running`, as in the second table.',
  'A job is held under the name of a worker, which the server binds to the epoch of the claim. Two workers with the same ' +
    'name count as one, unless they send the `epoch`.',
  '`LEASE_LOST`: another worker has the job, or the job was taken away (lease expired, cancelled, dead-lettered). ' +
    '`INVALID_TRANSITION`: the state of the job does not accept the request, although the worker holds the job, ended it ' +
    'itself, or nobody ever claimed it.',
  'A lease ends `lease_sec` or two intervals of `heartbeat_sec` after the claim or the last heartbeat, whichever is ' +
    'earlier. Without `heartbeat_sec`, a claim uses the interval of the job’s type, or else 30 s, the longest that the ' +
    'document allows: after 60 s of silence a job is orphaned, even with a longer lease. `lease.expires_at` is the actual ' +
    'end.',
  'Every heartbeat renews the whole lease, so it is both a `job_heartbeat` and a `job_lease_renewed` event. These two are ' +
    'kept for a day, all other events as long as the job. A soft cancel request has no event of its own.',
  'Failures and lost leases are counted separately, each up to `max_attempts` (3). Ten consecutive losses before a start ' +
    'count as one. `attempts` counts all claims of the round, so it may be higher than the maximum. A job without attempts ' +
    'left is dead-lettered, or `failed` with `on_exhausted: failed`. The backoff is 0.5 s, doubled up to 60 s, with ' +
    'jitter, unless `backoff` or the type sets another.',
  'Ended jobs are removed after 14 days. Jobs in the DLQ stay until they are retried or deleted, or for ' +
    '`keepDeadLetterSeconds` of their type.',
  'A soft cancel of a job that no worker holds cancels it at once. The holder of a job learns of a soft cancel from ' +
    '`cancel_requested_at`. It ends the job with `cancel {worker, mode: hard}` or with any other report; after 30 s the ' +
    'job is cancelled in any case.',
  'An `idempotency_key` (or the header `Idempotency-Key`) is kept for 24 hours, for enqueue, claim, cancel, dead_letter ' +
    'and retry. Other reports of a worker need none: a repeated report gets the same answer.',
  '`trace_id` may be any text. A W3C trace id is passed on to tracing. In events it is in the `payload`.',
  '`job_compensated` is an event of a Pawl job, whose tasks are the jobs here: `job_id` is the id of that Pawl job. ' +
    '`GET /jobs/{id}/events` with that id returns only this event, and its `payload` counts the jobs that were undone.',
  '`GET /events` filters by `type` and by time (`since` and `until`, both inclusive). A page may be empty even if there ' +
    'are more: continue until `next` is null. A start that was reported more than a minute late may be missing from a ' +
    'search by time.',
  'The document does not define the shapes of requests and answers, so they are Pawl’s. Unknown fields are ignored, because ' +
    'within a version later clients may send more.',
  'A claim conflict is a claim that lost a race: another claimer took the first job in line. Such a claim usually gets ' +
    'the next job.',
  'In `/metrics`, claim_conflicts and lease_renewals are those of this process. The other numbers cover all processes, with ' +
    'a short delay; latencies cover the last hour.',
]
