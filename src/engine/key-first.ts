import type { JobView } from '../protocol/jobs.ts'
import type { Context } from './context.ts'
import { finishErrands } from './drive.ts'
import { once } from './once.ts'
import type { SubmitCall } from './submit.ts'

/**
 * For what looks at a job before it makes one: the look is within the key's transaction, so that whoever asks again has
 * the first answer, whatever the job is by then.
 */
export async function keyFirst<Call extends SubmitCall>(
  context: Context,
  call: Call,
  request: unknown,
  make: (call: Omit<Call, 'idempotencyKey' | 'holder' | 'asked'>) => Promise<JobView>,
): Promise<JobView> {
  if (call.idempotencyKey === undefined) return make(call)
  const { idempotencyKey: _, holder: _holder, asked: _asked, ...rest } = call
  const view = await once(context.within(call.tx), call, request, tx => make({ ...rest, tx }))
  if (call.tx === undefined) {
    if (context.oneConnection) context.wake.tell(['*'])
    context.fileBell.ring()
    await finishErrands(context, view.id)
  }
  return view
}
