/** The ledger of files for readers, and the lineage of files. */
import type { ArtifactState } from '../../kernel/artifact.ts'
import type { DatumInput } from '../../kernel/datum.ts'
import { list, literal, type Sql } from '../driver/sql.ts'

export interface ArtifactRow {
  readonly id: string
  readonly jobId: string | null
  readonly stageId: string | null
  readonly taskId: string
  readonly epoch: number
  readonly name: string
  readonly uri: string
  readonly state: ArtifactState
  readonly inPlace: boolean
  readonly size: number | null
  readonly sha256: string | null
  readonly error: string | null
  readonly linkedFrom: string | null
  readonly createdAt: Date
  readonly changedAt: Date
  readonly endedAt: Date | null
}

/** The columns of an artifact `a`. */
export const artifactColumns = literal(`
  a.id, a.job_id, a.stage_id, a.task_id, a.epoch, a.name, a.uri, a.state, a.size::float8 as size, a.sha256, a.error,
  a.state = 'stored' or (a.state = 'uploaded' and a.staged_uri is null) as in_place,
  a.linked as linked_from, (a.history[1]).ts as created_at, (a.history[a.seq]).ts as changed_at, a.ended_at`)

/** Artifacts of a job, stage or task, in the order of their registration. */
export function listArtifacts(
  sql: Sql,
  ask: { of: 'job' | 'stage' | 'task'; id: string; states: readonly string[]; after: string | null; limit: number },
): Promise<ArtifactRow[]> {
  const owner = {
    job: 'a.job_id = i.id',
    stage: 'a.stage_id = i.id and a.job_id = (select job_id from pawl.stage where id = i.id)',
    task: 'a.task_id = i.id',
  }
  return sql<ArtifactRow>`
    select ${artifactColumns}
      from (select ${ask.id}::uuid as id) as i join pawl.artifact a on ${literal(owner[ask.of])}
     where a.id > coalesce(${ask.after}::uuid, '00000000-0000-0000-0000-000000000000')
       and (cardinality(${ask.states}::text[]) = 0 or a.state = any(${ask.states}::text[]))
     order by a.id limit ${ask.limit}::int`
}

/** The stored files of a stage by name, which later stages can take as inputs. A prefix ends in `/`. */
export function storedFiles(
  sql: Sql,
  stageId: string,
  { prefix = '', after = '', limit }: { prefix?: string; after?: string; limit: number },
): Promise<{ name: string; uri: string; size: number | null; sha256: string | null }[]> {
  // The names in a folder end where `/` would be replaced by the next character.
  const end = prefix === '' ? null : `${prefix.slice(0, -1)}0`
  return sql`
    select name, uri, size::float8 as size, sha256 from pawl.artifact
     where stage_id = ${stageId}::uuid and state = 'stored' and name > ${after > prefix ? after : prefix}
       and (${end}::text is null or name < ${end})
     order by name limit ${limit}::int`
}

const filesPerPage = 1000

/** All stored files of a stage behind a name, page by page. */
export async function* storedFilesAfter(sql: Sql, stageId: string, prefix: string, behind = '') {
  for (let after = behind; ; ) {
    const files = await storedFiles(sql, stageId, { prefix, after, limit: filesPerPage })
    yield files
    if (files.length < filesPerPage) return
    after = files.at(-1)!.name
  }
}

export interface LineageRow {
  readonly taskId: string
  readonly jobId: string | null
  readonly inputs: readonly DatumInput[]
}

/** Maximum number of bytes in one part of a lineage. */
export const maxLineageBytes = 16 * 2 ** 20

/** The newest of these tasks, with their inputs, as far as the bytes suffice. The first always fits. */
const newest = (limit: number) =>
  literal(`
     order by t.id desc limit ${limit}`)
const measured = literal(`
    select task_id, job_id, coalesce(payload->'inputs', '[]'::json) as inputs
      from (select *, sum(pawl.estimated_bytes(payload)) over (rows between unbounded preceding and 1 preceding) as before
              from found) as measured
     where coalesce(before, 0) < ${maxLineageBytes}`)

/** The tasks that wrote this file, and those that read it or a folder that contains it; newest first. */
export async function findLineage(
  sql: Sql,
  uri: string,
  folders: readonly string[],
  limit: number,
): Promise<{ madeBy: LineageRow[]; usedBy: LineageRow[] }> {
  const madeBy = await sql<LineageRow>`
    with found as materialized (
    select t.id as task_id, t.job_id, t.payload
      from pawl.artifact a join pawl.task t on t.id = a.task_id
     where md5(a.uri) = md5(${uri}) and a.uri = ${uri} and a.state = 'stored'
     ${newest(limit)})
    ${measured}`
  const usedBy = await sql<LineageRow>`
    with found as materialized (
    select t.id as task_id, t.job_id, t.payload
      from (select distinct i.task_id
              from unnest(${[uri, ...folders]}::text[]) as f (uri)
              join pawl.input i on md5(i.uri) = md5(f.uri) and i.uri = f.uri) as used
      join pawl.task t on t.id = used.task_id
     ${newest(limit)})
    ${measured}`
  return { madeBy, usedBy }
}

export const mostOutputs = 10_000

/** The stored files of these tasks. If they are very many, the first. */
export function outputsOfTasks(sql: Sql, taskIds: readonly string[]): Promise<ArtifactRow[]> {
  return sql<ArtifactRow>`
    select ${artifactColumns}
      from (select first.*, sum(octet_length(uri) + octet_length(name))
                              over (order by id rows between unbounded preceding and 1 preceding) as bytes_before
              from (select * from pawl.artifact
                     where task_id = any(${list(taskIds)}::uuid[]) and state = 'stored'
                     order by id limit ${mostOutputs}::int) as first) as a
     where coalesce(bytes_before, 0) < ${maxLineageBytes}::int
     order by a.id`
}
