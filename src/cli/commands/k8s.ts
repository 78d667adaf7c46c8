import { Problem } from '../../kernel/problem.ts'
import { serverManifests } from '../../runners/server-manifests.ts'
import { manifestsFor } from '../../runners/stages-to-run.ts'
import { yamlOf } from '../../runners/yaml.ts'
import { parseJobSpec } from '../../spec/parse-job-spec.ts'
import { type CommandResult, command } from '../command.ts'
import { kubernetesOf } from '../kubernetes-options.ts'
import { invalidCommand } from '../parse.ts'
import { readJob, specHelp } from '../read-spec.ts'

export const k8sRender = command({
  name: 'k8s render',
  summary: 'Print the Kubernetes manifests for the stages of a job, or, with --server, for Pawl itself.',
  details: `${specHelp}

Works without a cluster and without a server. Ids are placeholders, because a stage gets its ids when it runs.
The manifests of --server are those in deploy/, which you can adapt with kustomize.`,
  parameters: { 'spec?': 'the file with the job spec' },
  flags: { server: { kind: 'switch', summary: 'print the manifests of the server and its PostgreSQL' } },
  settings: ['k8sNamespace', 'k8sUrl', 'k8sImage', 'k8sKeySecret'],
  async run({ args: { spec }, flags, resolved }) {
    if ((spec === undefined) === (flags.server === undefined)) {
      throw invalidCommand('pawl k8s render requires either SPEC, the file with a job spec, or --server.')
    }
    if (spec === undefined) {
      const { text, items } = serverManifests()
      return answer(text, items)
    }
    const items = manifestsFor(parseJobSpec((await readJob(spec)).spec), kubernetesOf(resolved))
    if (items.length === 0)
      throw new Problem('FILE_INVALID', { file: spec, why: 'none of its stages runs in Kubernetes' })
    return answer(yamlOf(items), items)
  },
})

function answer(text: string, items: readonly object[]): CommandResult {
  return { data: { apiVersion: 'v1', kind: 'List', items }, show: () => text.trimEnd().split('\n') }
}
