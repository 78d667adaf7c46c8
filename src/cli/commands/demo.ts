/** The demo: a small job with a retry, a branch and a gate, run by this process. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Problem } from '../../kernel/problem.ts'
import type { JobView } from '../../protocol/jobs/jobs.ts'
import type { PawlApi } from '../../protocol/operations.ts'
import type { JobSpec } from '../../spec/job-spec.ts'
import { defineTask, type Task } from '../../worker/index.ts'
import { type WatchOptions, watchJob } from '../progress.ts'
import type { Line } from '../styled-line.ts'

const topics = ['rivers', 'bridges', 'clocks', 'letters', 'maps', 'lamps', 'gears', 'harbours']

const words = 'a pawl lets a wheel turn one way only so what is done stays done whatever lets go of it'.split(' ')

/** Long enough to be visible, too short to be annoying. */
const shortPause = (signal: AbortSignal) => sleep(150 + Math.random() * 250, undefined, { signal })

const write = defineTask({
  type: 'demo-write',
  retry: { attempts: 3, delaySeconds: 0.2 },
  async handler(topic, { attempt, signal }) {
    await shortPause(signal)
    if (topic === 'clocks' && attempt === 1) throw new Error('The pen ran dry; it is refilled for the next attempt.')
    const text = Array.from({ length: 40 }, (_, index) => words[(index * 7 + String(topic).length) % words.length])
    return { topic, text: text.join(' ') }
  },
})

const count = defineTask({
  type: 'demo-count',
  async handler(page, { signal }) {
    await shortPause(signal)
    const { topic, text } = page as { topic: string; text: string }
    return { topic, words: text.split(' ').length }
  },
})

const bind = defineTask({
  type: 'demo-bind',
  async handler(title, { signal }) {
    await shortPause(signal)
    return { title, language: 'en' }
  },
})

const translate = defineTask({ type: 'demo-translate', handler: () => 'traduit' })

const publish = defineTask({
  type: 'demo-publish',
  async handler(title, { signal }) {
    await shortPause(signal)
    return `"${title}" is out.`
  },
})

export const demoTasks: readonly Task[] = [write, count, bind, translate, publish]

const demoJob: JobSpec = {
  name: 'demo',
  input: { topics },
  stages: [
    { name: 'write', task: 'demo-write', forEach: 'input.topics', parallelism: 4 },
    { name: 'count', task: 'demo-count', forEach: 'stages.write.output' },
    { name: 'bind', needs: ['write'], task: 'demo-bind', payload: 'A small encyclopaedia' },
    { name: 'review', needs: ['count', 'bind'], gate: { ask: 'Is it fit to print?' } },
    { name: 'translate', needs: ['bind'], when: 'stages.bind.output.language != "en"', task: 'demo-translate' },
    { name: 'publish', needs: ['review', 'translate'], task: 'demo-publish', payload: 'A small encyclopaedia' },
  ],
}

/** Submits the demo job and shows its progress until it has ended. Approves its gate, as a person would. */
export async function showDemo(
  api: PawlApi,
  options: Omit<WatchOptions, 'api' | 'onRead'>,
  onSubmitted: (job: JobView) => void,
) {
  const { id } = await api.submit(demoJob)
  onSubmitted(await api.job(id))
  const approve = async ({ stages }: JobView) => {
    const gate = stages.find(({ state }) => state === 'waiting')
    if (gate === undefined) return
    await api.approve(gate.id, { actor: 'demo', comment: 'Looks right.' }).catch((error: Problem) => {
      // Somebody else may have approved it already.
      if (error.code !== 'MOVE_REFUSED') throw error
    })
  }
  return watchJob(id, { ...options, api, onRead: approve })
}

/** Explains the retry, the branch and the approval, which progress bars do not show. */
export async function explainDemo(api: PawlApi, { id, stages }: JobView): Promise<Line[]> {
  const { items } = await api.tasks({ jobId: id, limit: 1000 })
  const retried = items.filter(({ failures }) => failures > 0)
  const attempts = await Promise.all(retried.map(task => api.attempts(task.id)))
  return [
    ...retried.map((task, index): Line => {
      const [first] = attempts[index]!
      return `  Retry: "${task.payload}" failed once (${first?.error?.message}) and succeeded on attempt ${task.failures + 1}.`
    }),
    ...stages
      .filter(({ state }) => state === 'skipped')
      .map(({ name }): Line => `  Branch: "${name}" was skipped because its condition was false.`),
    ...stages.flatMap(({ name, approvals }) =>
      approvals.map(({ by, comment }): Line => `  Gate: "${name}" was approved by ${by}: ${comment}`),
    ),
  ]
}
