import { yamlOf } from '../../runners/yaml.ts'
import { parseJobSpec } from '../../spec/parse-job-spec.ts'
import { command } from '../command.ts'
import { localFlag, readJob, specHelp } from '../read-spec.ts'

export const jobConvert = command({
  name: 'job convert',
  summary: 'Convert a pipeline spec of Falconeri or Pachyderm to a job spec, as YAML or, with --json, as JSON.',
  more: `${specHelp}
It asks no server. What it prints \`pawl job run\` takes: to be kept, and changed. URIs are absolute in it, so that it
may lie anywhere.`,
  takes: { spec: 'the file of the pipeline' },
  flags: localFlag,
  async run({ args, flags }) {
    const { spec } = await readJob(args.spec, { local: flags.local === true })
    parseJobSpec(spec)
    return { data: spec, show: () => yamlOf([spec]).trimEnd().split('\n') }
  },
})
