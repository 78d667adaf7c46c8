/** An id may be typed as its beginning or its end, where that fits only one of the latest; lists show the end. */
import { Problem, type ProblemCode } from '../kernel/problem.ts'
import type { PawlApi } from '../protocol/api.ts'
import type { StageView } from '../protocol/jobs/jobs.ts'
import { refused } from './parse.ts'

const whole = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const latest = { limit: 200 }

export async function findJobId(api: PawlApi, typed: string): Promise<string> {
  if (whole.test(typed)) return typed
  const { items } = await api.jobs(latest)
  return only('JOB_NOT_FOUND', typed, items)
}

export async function findTaskId(api: PawlApi, typed: string): Promise<string> {
  if (whole.test(typed)) return typed
  const { items } = await api.tasks({ limit: 1000 })
  return only('TASK_NOT_FOUND', typed, items)
}

/** A stage may also be typed as JOB/NAME. */
export async function findStageId(api: PawlApi, typed: string): Promise<string> {
  if (whole.test(typed)) return typed
  const slash = typed.indexOf('/')
  if (slash < 0) {
    const { items } = await api.jobs(latest)
    return only(
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

function only(code: ProblemCode, typed: string, items: readonly { readonly id: string }[]): string {
  const part = typed.replace(/^…|…$/g, '').toLowerCase()
  const fits = items.filter(({ id }) => part.length > 0 && (id.startsWith(part) || id.endsWith(part)))
  if (fits.length > 1) {
    throw refused(
      `"${typed}" fits ${fits.length} ids: ${fits
        .slice(0, 3)
        .map(({ id }) => id)
        .join(', ')}${fits.length > 3 ? ', …' : ''}.`,
    )
  }
  const [found] = fits
  if (found === undefined) throw new Problem(code, { id: typed })
  return found.id
}
