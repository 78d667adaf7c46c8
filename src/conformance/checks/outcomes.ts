/** Outcomes: how the end of a handler is reported. */
import { isDeepStrictEqual } from 'node:util'
import { type Check, expect } from '../check.ts'
import { expectOneRun, type Rig } from '../rig.ts'

const output: Check = {
  id: 'output',
  title: 'claims a task, runs it once, and reports its output unchanged',
  level: 'required',
  async run(rig) {
    const expected = { text: 'Grüße, 世界 🙂 "quoted"\n', list: [1, 2.5, null, []], deep: { empty: {}, yes: true } }
    const id = await rig.enqueue({ do: 'succeed', output: expected })
    rig.start()
    const task = await rig.ended(id, 20)
    expect(task.state === 'succeeded', `it ended as ${task.state}: ${JSON.stringify(task.error)}`)
    expect(isDeepStrictEqual(task.output, expected), `the reported output was ${JSON.stringify(task.output)}`)
    expectOneRun(rig, id)
    return 'succeeded, with the expected output'
  },
}

const retry: Check = {
  id: 'retry',
  title: 'reports a failure with its message, and runs the next attempt',
  level: 'required',
  async run(rig) {
    const id = await rig.enqueue({ do: 'fail', times: 1, message: 'planted failure' })
    rig.start()
    const task = await rig.ended(id, 20)
    const error = await firstError(rig, id)
    expect(error?.message?.includes('planted failure') === true, `the first attempt reported ${JSON.stringify(error)}`)
    expect(task.state === 'succeeded', `after a failed and a successful attempt, the task is ${task.state}`)
    return 'failed once, with its message, and then succeeded'
  },
}

const giveUp: Check = {
  id: 'give-up',
  title: 'marks a permanent failure as permanent, so that the task is not retried',
  level: 'required',
  async run(rig) {
    const id = await rig.enqueue({ do: 'giveUp', message: 'no use' })
    rig.start()
    const task = await rig.ended(id, 20)
    expect(task.state === 'failed', `it ended as ${task.state} after ${task.epoch} attempts, not as failed after one`)
    expect(task.error?.permanent === true, `its error lacks permanent: true: ${JSON.stringify(task.error)}`)
    expectOneRun(rig, id)
    return 'failed permanently after one attempt'
  },
}

const retryIn: Check = {
  id: 'retry-in',
  title: 'reports the retry delay that the handler asks for (retryInSeconds)',
  level: 'required',
  async run(rig) {
    const id = await rig.enqueue({ do: 'retryIn', seconds: 1.5, times: 1 })
    rig.start()
    const task = await rig.ended(id, 20)
    const error = await firstError(rig, id)
    expect(
      error?.retryInSeconds === 1.5,
      `the first attempt reported ${JSON.stringify(error)}, without retryInSeconds: 1.5`,
    )
    expect(task.state === 'succeeded', `after the second attempt, the task is ${task.state}`)
    return 'retried after 1.5 s'
  },
}

const unknownType: Check = {
  id: 'unknown-type',
  title: 'reports a task of an unknown type as failed, and continues with other tasks',
  level: 'required',
  async run(rig) {
    const unknown = await rig.enqueueOther('nobody-knows-this-type', { retry: { attempts: 1 } })
    rig.start()
    const task = await rig.ended(unknown, 20)
    const end = await rig.endOf(unknown, task.epoch)
    const isReported = end?.cause === 'reported_failed' || end?.cause === 'reported_dead_lettered'
    expect(isReported, `it ended as ${task.state} by ${end?.cause}, not by a report of failed or dead_lettered`)
    await expectNext(rig)
    return `${task.state}: ${task.error?.message}`
  },
}

async function firstError(rig: Rig, id: string) {
  const end = await rig.endOf(id, 1)
  return end?.payload.error as { message?: string; retryInSeconds?: number } | undefined
}

/** The worker still works: it completes the next task. */
export async function expectNext(rig: Rig): Promise<void> {
  const id = await rig.enqueue({ do: 'succeed', output: 'next' })
  const { state } = await rig.ended(id, 20)
  expect(state === 'succeeded', `the next task ended as ${state}`)
}

export const outcomeChecks = [output, retry, giveUp, retryIn, unknownType]
