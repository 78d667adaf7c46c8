import { yamlOf } from '../../runners/yaml.ts'
import { parseJobSpec } from '../../spec/parse-job-spec.ts'
import { command } from '../command.ts'
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
