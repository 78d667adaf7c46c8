import type { Entry } from '../../files/file-store.ts'
import type { Lister } from '../../files/inputs.ts'
import { pathIn } from '../../files/uri.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { storedFiles } from '../../store/files/read-artifacts.ts'
import type { StageRow } from '../../store/jobs/jobs.ts'

const filesPerPage = 1000

/** The files that a stage has put out, as a folder: what lies beside them in the store is not seen. */
export function ledgerLister(sql: Sql, stage: StageRow): Lister {
  const base = stage.plan.files?.outputs ?? ''
  return { base, list: (folder, ask = {}) => list(sql, stage.id, pathIn(base, folder) ?? '', ask) }
}

async function* list(
  sql: Sql,
  stageId: string,
  folder: string,
  { after: behind = '', deep = false }: { after?: string; deep?: boolean },
): AsyncGenerator<readonly Entry[]> {
  // A folder that was the last entry has been seen with all that is in it.
  let after = folder + (behind.endsWith('/') && !deep ? `${behind.slice(0, -1)}0` : behind)
  let last = ''
  for (;;) {
    const files = await storedFiles(sql, stageId, { prefix: folder, after, limit: filesPerPage })
    const entries: Entry[] = []
    for (const { name, size, sha256 } of files) {
      const path = name.slice(folder.length)
      const inner = deep ? -1 : path.indexOf('/')
      if (inner < 0) entries.push({ path, ...(size !== null && { size }), ...(sha256 !== null && { version: sha256 }) })
      else if (last !== path.slice(0, inner + 1)) entries.push({ path: path.slice(0, inner + 1) })
      last = entries.at(-1)?.path ?? last
    }
    if (entries.length > 0) yield entries
    if (files.length < filesPerPage) return
    after = files.at(-1)!.name
  }
}
