/** The demo: a small job that shows a retry, a branch and a gate, run by this process. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Problem } from '../../kernel/problem.ts'
import type { PawlApi } from '../../protocol/api.ts'
import type { JobView } from '../../protocol/jobs/jobs.ts'
import type { JobSpec } from '../../spec/job-spec.ts'
import { defineTask, type Task } from '../../worker/index.ts'
import type { Line } from '../line.ts'
import { type Watching, watchJob } from '../watch.ts'

const topics = ['rivers', 'bridges', 'clocks', 'letters', 'maps', 'lamps', 'gears', 'harbours']

const words = 'a pawl lets a wheel turn one way only so what is done stays done whatever lets go of it'.split(' ')

/** Long enough to be seen, short enough not to be waited for. */
const aMoment = (signal: AbortSignal) => sleep(150 + Math.random() * 250, undefined, { signal })

const write = defineTask({
  type: 'demo-write',
  retry: { attempts: 3, delaySeconds: 0.2 },
  async handler(topic, { attempt, signal }) {
    await aMoment(signal)
    if (topic === 'clocks' && attempt === 1) throw new Error('The pen ran dry. It is filled for the next attempt.')
    const text = Array.from({ length: 40 }, (_, index) => words[(index * 7 + String(topic).length) % words.length])
    return { topic, text: text.join(' ') }
  },
})

const count = defineTask({
  type: 'demo-count',
  async handler(page, { signal }) {
    await aMoment(signal)
    const { topic, text } = page as { topic: string; text: string }
    return { topic, words: text.split(' ').length }
  },
})

const bind = defineTask({
  type: 'demo-bind',
  async handler(title, { signal }) {
    await aMoment(signal)
    return { title, language: 'en' }
  },
})

const translate = defineTask({ type: 'demo-translate', handler: () => 'traduit' })

const publish = defineTask({
  type: 'demo-publish',
  async handler(title, { signal }) {
    await aMoment(signal)
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

/** Submits it and shows it until it has ended. Its gate is approved here, as a person would. */
export async function showDemo(api: PawlApi, to: Omit<Watching, 'api' | 'seen'>, submitted: (job: JobView) => void) {
  const { id } = await api.submit(demoJob)
  submitted(await api.job(id))
  const approve = async ({ stages }: JobView) => {
    const gate = stages.find(({ state }) => state === 'waiting')
    if (gate === undefined) return
    await api.approve(gate.id, { actor: 'demo', comment: 'Looks right.' }).catch((error: Problem) => {
      // Somebody at another terminal was faster.
      if (error.code !== 'MOVE_REFUSED') throw error
    })
  }
  return watchJob(id, { ...to, api, seen: approve })
}

/** What a bar does not show. */
export async function retellDemo(api: PawlApi, { id, stages }: JobView): Promise<Line[]> {
  const { items } = await api.tasks({ jobId: id, limit: 1000 })
  const retried = items.filter(({ failures }) => failures > 0)
  const attempts = await Promise.all(retried.map(task => api.attempts(task.id)))
  return [
    ...retried.map((task, index): Line => {
      const [first] = attempts[index]!
      return `  A retry: "${task.payload}" failed once (${first?.error?.message}) and was done at attempt ${task.failures + 1}.`
    }),
    ...stages
      .filter(({ state }) => state === 'skipped')
      .map(({ name }): Line => `  A branch not taken: "${name}" was skipped, for its condition was false.`),
    ...stages.flatMap(({ name, approvals }) =>
      approvals.map(({ by, comment }): Line => `  A gate: "${name}" was approved by ${by}: ${comment}`),
    ),
  ]
}
