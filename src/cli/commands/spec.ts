/** Commands that convert a job spec, without a server. */
import { Problem } from '../../kernel/problem.ts'
import { manifestsFor, serverManifests, yamlOf } from '../../runners/render.ts'
import { parseJobSpec } from '../../spec/parse-job-spec.ts'
import { type CommandResult, command } from '../command.ts'
import { kubernetesOf } from '../component-options.ts'
import { invalidCommand } from '../parse.ts'
import { localFlag, readJob, specHelp } from '../read-spec.ts'

export const jobConvert = command({
  name: 'job convert',
  summary: 'Convert a pipeline spec of Falconeri or Pachyderm to a job spec, as YAML or, with --json, as JSON.',
  details: `${specHelp}

Works without a server. You can edit the printed spec and submit it with \`pawl job run\`. Its URIs are absolute, so you
can move it anywhere.`,
  parameters: { spec: 'the file with the pipeline' },
  flags: localFlag,
  async run({ args, flags }) {
    const { spec } = await readJob(args.spec, { local: flags.local === true })
    parseJobSpec(spec)
    return { data: spec, show: () => yamlOf([spec]).trimEnd().split('\n') }
  },
})

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
