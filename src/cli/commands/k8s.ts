import { Problem } from '../../kernel/problem.ts'
import { serverManifests } from '../../runners/server-manifests.ts'
import { manifestsFor } from '../../runners/stages-to-run.ts'
import { yamlOf } from '../../runners/yaml.ts'
import { parseJobSpec } from '../../spec/parse-job-spec.ts'
import { type Answer, command } from '../command.ts'
import { kubernetesOf } from '../kubernetes-settings.ts'
import { refused } from '../parse.ts'
import { readJob, specHelp } from '../read-spec.ts'

export const k8sRender = command({
  name: 'k8s render',
  summary: 'Print the Kubernetes manifests for the stages of a job, or, with --server, for Pawl itself.',
  more: `${specHelp}

It asks no cluster and no server. Ids are placeholders: a stage has its own when it runs.
The manifests of --server are those of deploy/; kustomize makes them yours.`,
  takes: { 'spec?': 'the file of the job' },
  flags: { server: { kind: 'switch', summary: 'print the manifests of the server and its PostgreSQL' } },
  settings: ['k8sNamespace', 'k8sUrl', 'k8sImage', 'k8sKeySecret'],
  async run({ args: { spec }, flags, settled }) {
    if ((spec === undefined) === (flags.server === undefined)) {
      throw refused('pawl k8s render wants either SPEC, the file of a job, or --server.')
    }
    if (spec === undefined) {
      const { text, items } = serverManifests()
      return answer(text, items)
    }
    const items = manifestsFor(parseJobSpec((await readJob(spec)).spec), kubernetesOf(settled))
    if (items.length === 0)
      throw new Problem('FILE_INVALID', { file: spec, why: 'none of its stages runs in Kubernetes' })
    return answer(yamlOf(items), items)
  },
})

function answer(text: string, items: readonly object[]): Answer {
  return { data: { apiVersion: 'v1', kind: 'List', items }, show: () => text.trimEnd().split('\n') }
}
