import { type ArtifactState, artifactLifecycle } from '../../kernel/artifact.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import type { ArtifactView, Making } from '../../protocol/files/artifacts.ts'
import { absoluteUri } from '../../spec/absolute-uris.ts'
import { apiCommand, showingCommand } from '../command.ts'
import { findJobId, jobParameter } from '../find-id.ts'
import { fileUri, folderUri } from '../read-spec.ts'
import { stateFlag } from '../shared-flags.ts'
import { type Line, styled } from '../styled-line.ts'
import { artifactTable } from '../task-files.ts'

const allStates = statesOf(artifactLifecycle)

export const jobOutputs = showingCommand({
  name: 'job outputs',
  summary: 'List all output files of a job.',
  details: `Without --state, the outputs of discarded attempts are omitted. With --uris, only the URIs of stored files are
printed, one per line, for scripts: pawl job outputs ID --uris | xargs …`,
  parameters: jobParameter,
  completes: 'job',
  flags: {
    state: stateFlag(allStates),
    uris: { kind: 'switch', summary: 'print only the URIs' },
  },
  async run({ api, args, flags, output, json }) {
    const id = await findJobId(api, args.id)
    const defaultStates = flags.uris ? ['stored'] : allStates.filter(state => state !== 'discarded')
    const state = (flags.state ?? defaultStates) as readonly ArtifactState[]
    const items: ArtifactView[] = []
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await api.jobArtifacts(id, { state, limit: 1000, ...(cursor !== undefined && { cursor }) })
      if (flags.uris && !json) for (const { uri } of page.items) output.print(uri)
      else items.push(...page.items)
      cursor = page.next
    }
    if (flags.uris && !json) return { data: undefined }
    const show = ({ width }: { width: number }): Line[] =>
      items.length === 0 ? ['There are no matching files.'] : artifactTable(items, width)
    return { data: flags.uris ? items.map(({ uri }) => uri) : items, show }
  },
})

export const lineage = apiCommand({
  name: 'lineage',
  summary: 'Show which inputs a file was made from, and which files were made from it.',
  parameters: { file: 'the URI of the file, or its path on this machine' },
  async run({ api, args }) {
    const uri = args.file.includes('://') ? absoluteUri(args.file, folderUri('.')) : fileUri(args.file)
    const found = await api.lineage({ uri })
    const { madeBy, usedBy } = found
    const show = (): Line[] => [
      styled('bold', uri),
      ...madeBy.flatMap(making => makingLines('made by', making, 'from', making.inputs)),
      ...usedBy.flatMap(making => makingLines('used by', making, 'for', making.outputs)),
      ...(madeBy.length + usedBy.length === 0 ? ['No known task created or used this file.'] : []),
    ]
    return { data: found, show }
  },
})

function makingLines(
  word: string,
  { taskId, jobId }: Making,
  direction: string,
  files: readonly { readonly uri: string }[],
): Line[] {
  const job = jobId === null ? '' : ` of job ${jobId}`
  return [
    [styled('dim', `  ${word} `), `task ${taskId}${job}`],
    ...files.map(({ uri }): Line => [styled('dim', `    ${direction} `), uri]),
  ]
}
