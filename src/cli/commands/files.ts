import { type ArtifactState, artifactLifecycle } from '../../kernel/artifact.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import type { PawlApi } from '../../protocol/api.ts'
import type { ArtifactView, Making } from '../../protocol/files/artifacts.ts'
import { absoluteUri } from '../../spec/absolute-uris.ts'
import { apiCommand, showingCommand } from '../command.ts'
import { findJobId } from '../find-id.ts'
import { fileUri, folderUri } from '../read-spec.ts'
import { type Line, styled } from '../styled-line.ts'
import { artifactTable } from '../task-files.ts'

const allStates = statesOf(artifactLifecycle)

export const jobOutputs = showingCommand({
  name: 'job outputs',
  summary: 'List all output files of a job.',
  details: `Without --state, the outputs of discarded attempts are omitted. With --uris, only the URIs of stored files are
printed, one per line, for scripts: pawl job outputs ID --uris | xargs …`,
  parameters: { id: 'the id of the job, or its beginning or end' },
  flags: {
    state: { kind: 'list', value: 'STATE', summary: 'only in this state, may be repeated', words: allStates },
    uris: { kind: 'switch', summary: 'print only the URIs' },
  },
  async run({ api, args, flags, output, json }) {
    const id = await findJobId(api, args.id)
    const defaultStates = flags.uris ? ['stored'] : allStates.filter(state => state !== 'discarded')
    const state = (flags.state ?? defaultStates) as readonly ArtifactState[]
    const pages = artifactsOf(api, id, state)
    if (flags.uris && !json) {
      for await (const page of pages) for (const { uri } of page) output.print(uri)
      return { data: undefined }
    }
    const items: ArtifactView[] = []
    for await (const page of pages) items.push(...page)
    const show = ({ width }: { width: number }): Line[] =>
      items.length === 0 ? ['There are no matching files.'] : artifactTable(items, width)
    return { data: flags.uris ? items.map(({ uri }) => uri) : items, show }
  },
})

async function* artifactsOf(api: PawlApi, jobId: string, state: readonly ArtifactState[]) {
  for (let cursor: string | undefined; ; ) {
    const query = { state, limit: 1000, ...(cursor !== undefined && { cursor }) }
    const { items, next } = await api.jobArtifacts(jobId, query)
    yield items
    if (next === null) return
    cursor = next
  }
}

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
