/** The pipelines of the settings: specs as they are, or the files that they are in. */
import type { Settled } from '../config/resolve.ts'
import { withAbsoluteUris } from '../spec/absolute-uris.ts'
import type { JobSpec } from '../spec/job-spec.ts'
import { folderUri, readJob } from './read-spec.ts'

/** file://./ means the folder of the spec's own file; in the settings themselves, where the command is typed. */
export async function pipelinesOf({ values }: Settled): Promise<{ readonly pipelines: Record<string, JobSpec> }> {
  const read = Object.entries(values.pipelines ?? {}).map(async ([name, given]) => {
    const spec = typeof given === 'string' ? (await readJob(given)).spec : withAbsoluteUris(given, folderUri('.'))
    return [name, spec] as const
  })
  return { pipelines: Object.fromEntries(await Promise.all(read)) }
}
