/** What answers about files hold, for machines. */
import { artifactLifecycle } from '../../kernel/artifact.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import type { StageFiles } from '../jobs/jobs.ts'
import { at, flag, id, list, orNull, ref, text, view, whole, words } from '../shapes.ts'
import type { ArtifactView, Lineage, Making, StageFile } from './artifacts.ts'

const artifact = view<ArtifactView>({
  id,
  jobId: orNull(id),
  stageId: orNull(id),
  taskId: id,
  epoch: whole,
  name: text,
  uri: text,
  state: words(...statesOf(artifactLifecycle)),
  inPlace: flag,
  size: orNull(whole),
  sha256: orNull(text),
  error: orNull(text),
  linkedFrom: orNull(id),
  createdAt: at,
  changedAt: at,
  endedAt: orNull(at),
})

const input = {
  type: 'object',
  required: ['name', 'uri', 'path'],
  properties: { name: text, uri: text, path: text, size: whole, version: text },
}

const making = view<Making>({
  taskId: id,
  jobId: orNull(id),
  inputs: list(input),
  outputs: list(ref('Artifact')),
})

export const stageFiles = view<StageFiles>({
  datums: flag,
  outputs: orNull(text),
  runner: orNull(words('local', 'kubernetes')),
})

export const artifactViews = {
  StageFile: view<StageFile>({ name: text, uri: text, size: orNull(whole), sha256: orNull(text) }),
  Artifact: artifact,
  Lineage: view<Lineage>({ uri: text, madeBy: list(making), usedBy: list(making) }),
}
