import type { ResolvedSettings } from '../config/resolve-settings.ts'
import { withAbsoluteUris } from '../spec/absolute-uris.ts'
import type { JobSpec } from '../spec/job-spec.ts'
import { folderUri, readJob } from './read-spec.ts'

/**
 * The pipelines in the settings: specs, or files with specs. In a file, file://./ is the folder of the file; in a spec in
 * the settings, it is the current folder.
 */
export async function pipelinesOf({
  values,
}: ResolvedSettings): Promise<{ readonly pipelines: Record<string, JobSpec> }> {
  const read = Object.entries(values.pipelines ?? {}).map(async ([name, given]) => {
    const spec = typeof given === 'string' ? (await readJob(given)).spec : withAbsoluteUris(given, folderUri('.'))
    return [name, spec] as const
  })
  return { pipelines: Object.fromEntries(await Promise.all(read)) }
}
