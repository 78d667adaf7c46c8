/** Finds ids by their beginning or end, which must be unique among the latest entities. Lists show the end. */
import { Problem, type ProblemCode } from '../kernel/problem.ts'
import type { PawlApi } from '../protocol/operations.ts'
import type { TaskView } from '../protocol/tasks/tasks.ts'
import { invalidCommand } from './parse.ts'

export const jobParameter = { id: 'the id of the job, or its beginning or end' } as const
export const taskParameter = { id: 'the id of the task, or its beginning or end' } as const

const fullId = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const latest = { limit: 200 }

type Found = readonly { readonly id: string }[]

export function findJobId(api: PawlApi, typed: string): Promise<string> {
  return findOne('JOB_NOT_FOUND', typed, async () => (await api.jobs(latest)).items)
}

export function findTaskId(api: PawlApi, typed: string): Promise<string> {
  return findOne('TASK_NOT_FOUND', typed, () => latestTasks(api))
}

/** Pages of tasks with long payloads are short. */
async function latestTasks(api: PawlApi): Promise<TaskView[]> {
  const tasks: TaskView[] = []
  for (let cursor: string | null | undefined; cursor !== null && tasks.length < 1000; ) {
    const page = await api.tasks({ limit: 1000, ...(cursor !== undefined && { cursor }) })
    tasks.push(...page.items)
    cursor = page.next
  }
  return tasks
}

/** Also accepts JOB/NAME. */
export async function findStageId(api: PawlApi, typed: string): Promise<string> {
  const slash = typed.indexOf('/')
  if (slash < 0) {
    const readStages = async () => (await api.jobs(latest)).items.flatMap(({ stages }): Found => stages)
    return findOne('STAGE_NOT_FOUND', typed, readStages)
  }
  const { stages } = await api.job(await findJobId(api, typed.slice(0, slash)))
  const stage = stages.find(({ name }) => name === typed.slice(slash + 1))
  if (stage === undefined) throw new Problem('STAGE_NOT_FOUND', { id: typed, stages: stages.map(({ name }) => name) })
  return stage.id
}

async function findOne(code: ProblemCode, typed: string, read: () => Promise<Found>): Promise<string> {
  if (fullId.test(typed)) return typed
  const part = typed.replace(/^…|…$/g, '').toLowerCase()
  const matches = (await read()).filter(({ id }) => part.length > 0 && (id.startsWith(part) || id.endsWith(part)))
  if (matches.length > 1) {
    const first = matches.slice(0, 3).map(({ id }) => id)
    const more = matches.length > 3 ? ', …' : ''
    throw invalidCommand(`"${typed}" matches ${matches.length} ids: ${first.join(', ')}${more}.`)
  }
  const [found] = matches
  if (found === undefined) throw new Problem(code, { id: typed })
  return found.id
}
