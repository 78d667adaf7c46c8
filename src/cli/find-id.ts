/** Finds ids by their beginning or end, which must be unique among the latest entities. Lists show the end. */
import { Problem, type ProblemCode } from '../kernel/problem.ts'
import type { PawlApi } from '../protocol/api.ts'
import type { StageView } from '../protocol/jobs/jobs.ts'
import { invalidCommand } from './parse.ts'

const fullId = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const latest = { limit: 200 }

export async function findJobId(api: PawlApi, typed: string): Promise<string> {
  if (fullId.test(typed)) return typed
  const { items } = await api.jobs(latest)
  return findOne('JOB_NOT_FOUND', typed, items)
}

export async function findTaskId(api: PawlApi, typed: string): Promise<string> {
  if (fullId.test(typed)) return typed
  const { items } = await api.tasks({ limit: 1000 })
  return findOne('TASK_NOT_FOUND', typed, items)
}

/** Also accepts JOB/NAME. */
export async function findStageId(api: PawlApi, typed: string): Promise<string> {
  if (fullId.test(typed)) return typed
  const slash = typed.indexOf('/')
  if (slash < 0) {
    const { items } = await api.jobs(latest)
    return findOne(
      'STAGE_NOT_FOUND',
      typed,
      items.flatMap(({ stages }): readonly StageView[] => stages),
    )
  }
  const { stages } = await api.job(await findJobId(api, typed.slice(0, slash)))
  const stage = stages.find(({ name }) => name === typed.slice(slash + 1))
  if (stage === undefined) throw new Problem('STAGE_NOT_FOUND', { id: typed, stages: stages.map(({ name }) => name) })
  return stage.id
}

function findOne(code: ProblemCode, typed: string, items: readonly { readonly id: string }[]): string {
  const part = typed.replace(/^…|…$/g, '').toLowerCase()
  const matches = items.filter(({ id }) => part.length > 0 && (id.startsWith(part) || id.endsWith(part)))
  if (matches.length > 1) {
    throw invalidCommand(
      `"${typed}" matches ${matches.length} ids: ${matches
        .slice(0, 3)
        .map(({ id }) => id)
        .join(', ')}${matches.length > 3 ? ', …' : ''}.`,
    )
  }
  const [found] = matches
  if (found === undefined) throw new Problem(code, { id: typed })
  return found.id
}
