/**
 * Requests under a lease. Clients send their worker's name, which the server binds to the epoch of the claim, so a worker
 * that lost its job is refused. Two workers with the same name are told apart only by the epoch, if they send it.
 */
import { Problem } from '../../kernel/problem.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import type { HeldTask } from '../../protocol/tasks/sync.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import type { AskersEngine } from '../askers-engine.ts'
import { type Answer, type DialectRequest, good } from '../dialect.ts'
import type { ValuesOf } from '../kit/fields.ts'
import { unlessProblem } from '../kit/refusals.ts'
import { jobOf } from './job.ts'
import type { holderFields } from './requests.ts'
import { isAccepted, type Move, stateOf } from './transitions.ts'

type Holder = ValuesOf<typeof holderFields, 'worker'>

/**
 * Does what the holder requests, and answers with the job. The engine has the fence. This only checks whether a held job
 * accepts the request in its state: within one epoch a running job never becomes assigned again.
 */
export async function asHolder(
  request: DialectRequest,
  move: Move,
  holder: Holder,
  act: (held: HeldTask) => Promise<unknown>,
): Promise<Answer> {
  const { engine, params } = request
  const task = await engine.heldTask(params.id!)
  const epoch = epochOf(task, holder)
  const isRepeatedStart = move === 'start' && task.state === 'running'
  const isHolder = epoch === task.epoch && taskLifecycle.states[task.state].kind === 'held'
  if (isHolder && !isRepeatedStart && !isAccepted(move, stateOf(task.state))) throw refused(task, move)
  await unlessProblem(
    ['LEASE_LOST'],
    () => {
      if (epoch === undefined) throw new Problem('LEASE_LOST')
      return act({ id: task.id, epoch })
    },
    async () => {
      throw await reasonOfLoss(request, move, holder)
    },
  )
  return good(jobOf(await engine.task(task.id)))
}

/** Undefined if another worker holds the job. An earlier epoch may repeat a report whose answer was lost; the engine knows. */
function epochOf(task: TaskView, { worker, epoch = task.epoch }: Holder): number | undefined {
  return epoch === task.epoch && task.owner !== worker ? undefined : epoch
}

/**
 * A worker whose job was taken away has lost its lease. For a worker that ended the job itself, or a job that was never
 * claimed, the transition is invalid.
 */
async function reasonOfLoss(
  { engine, params }: DialectRequest,
  move: Move,
  { worker, epoch }: Holder,
): Promise<Problem> {
  const task = await engine.task(params.id!)
  const last = (await engine.attempts(task.id)).at(-1)
  const isOwn = last?.worker === worker && (epoch === undefined || epoch === last.epoch)
  const wasReported = isOwn && last.cause?.startsWith('reported_') === true
  if (last === undefined || wasReported) return refused(task, move)
  return new Problem('LEASE_LOST', { id: task.id, state: task.state })
}

function refused({ id, state }: TaskView, move: Move): Problem {
  return new Problem('MOVE_REFUSED', { id, state, move })
}

/** Sends one part of the worker protocol, and throws what it refuses. */
export async function reportTo(
  { engine }: DialectRequest,
  worker: string,
  part: Parameters<AskersEngine['report']>[1],
): Promise<void> {
  const { refused } = await engine.report(worker, part)
  for (const { code, message } of refused) throw new Problem(code, { told: message })
}
