import { Problem } from '../../kernel/problem.ts'
import {
  type ArtifactQuery,
  type ArtifactView,
  artifactQueryFields,
  type Lineage,
  lineageFields,
  type StageFile,
  type StageFilesQuery,
  stageFilesFields,
} from '../../protocol/files/artifacts.ts'
import type { Page } from '../../protocol/tasks/tasks.ts'
import {
  type ArtifactRow,
  findLineage,
  type LineageRow,
  listArtifacts,
  outputsOfTasks,
  storedFiles,
} from '../../store/files/read-artifacts.ts'
import { checkId, checkOptions, decode, encode } from '../check.ts'
import type { Context } from '../context.ts'
import { readJob, readStage } from '../jobs/read-jobs.ts'
import { readTask } from '../tasks/read-tasks.ts'
import { iso } from '../tasks/task-view.ts'

/** Returns the files of a job, stage or task in the order of their registration. */
export async function findArtifacts(
  context: Context,
  of: 'job' | 'stage' | 'task',
  id: string,
  query: ArtifactQuery = {},
): Promise<Page<ArtifactView>> {
  checkOptions(query, artifactQueryFields, 'query')
  const owner = await { job: readJob, stage: readStage, task: readTask }[of](context, id)
  const { limit = 100 } = query
  const rows = await listArtifacts(context.sql, {
    of,
    id: owner.id,
    states: query.state === undefined ? [] : [query.state].flat(),
    after:
      query.cursor === undefined
        ? null
        : checkId(decode<{ after: string }>(query.cursor, 'after').after, 'CURSOR_INVALID'),
    limit: limit + 1,
  })
  const items = rows.slice(0, limit).map(toArtifactView)
  return { items, next: rows.length > limit ? encode({ after: items.at(-1)!.id }) : null }
}

/** Returns a stage's files that are in their final locations, by name. */
export async function findStageFiles(
  { sql }: Context,
  id: string,
  ask: StageFilesQuery = {},
): Promise<Page<StageFile>> {
  checkOptions(ask, stageFilesFields, 'query')
  const { limit = 1000, prefix = '' } = ask
  const stage = await readStage({ sql }, id)
  const after = ask.cursor === undefined ? '' : decode<{ name: string }>(ask.cursor, 'name').name
  if (typeof after !== 'string') throw new Problem('CURSOR_INVALID', { cursor: ask.cursor })
  const items = await storedFiles(sql, stage.id, { prefix, after, limit: limit + 1 })
  const page = items.slice(0, limit)
  return { items: page, next: items.length > limit ? encode({ name: page.at(-1)!.name }) : null }
}

export const mostMakings = 100

/** Returns the inputs that a file was made from, and the outputs made from it. If there are very many, the newest. */
export async function readLineage({ sql }: Context, query: { readonly uri: string }): Promise<Lineage> {
  checkOptions({ ...query, uri: query.uri ?? null }, lineageFields, 'query')
  const { uri } = query
  const { madeBy, usedBy } = await findLineage(sql, uri, foldersOf(uri), mostMakings)
  const outputs = await outputsOfTasks(sql, [...new Set([...madeBy, ...usedBy].map(({ taskId }) => taskId))])
  const views = outputs.map(toArtifactView)
  const made = (row: LineageRow) => ({ ...row, outputs: views.filter(({ taskId }) => taskId === row.taskId) })
  return { uri, madeBy: madeBy.map(made), usedBy: usedBy.map(made) }
}

/** Returns all folders that contain the file. Each may have been the input of a task. */
function foldersOf(uri: string): string[] {
  const start = uri.indexOf('://') + 3
  const ends = [...uri.slice(0, -1).matchAll(/\//g)].map(({ index }) => index + 1).filter(end => end > start)
  return ends.map(end => uri.slice(0, end))
}

export function toArtifactView(row: ArtifactRow): ArtifactView {
  return {
    ...row,
    createdAt: row.createdAt.toISOString(),
    changedAt: row.changedAt.toISOString(),
    endedAt: iso(row.endedAt),
  }
}
