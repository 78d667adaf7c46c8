/** The input, outputs, metadata and spec of a job. */
import { Stack } from '@mantine/core'
import { useQueries } from '@tanstack/react-query'
import { sanitize } from '../../../src/kernel/sanitize.ts'
import type { JobView } from '../../../src/protocol/jobs/jobs.ts'
import { api } from '../server.ts'
import { wholePage } from '../whole-page.ts'
import { Json } from './json.tsx'

const mostOutputs = 20

export function JobData({ job }: { job: JobView }) {
  return (
    <Stack>
      <Json label="Input" value={job.input} />
      <Outputs job={job} />
      <Json label="Metadata" value={job.metadata} />
      <Json label="Spec" value={specOf(job)} />
      <Json label="Full record" value={job} />
    </Stack>
  )
}

/** The outputs of the stages that no other stage needs: they are the result of the job. */
function Outputs({ job }: { job: JobView }) {
  const last = job.stages.filter(
    ({ name, kind }) => kind === 'work' && !job.stages.some(({ needs }) => needs.includes(name)),
  )
  const read = useQueries({
    queries: last.map(({ id }) => ({
      queryKey: ['outputs', id],
      queryFn: () =>
        wholePage(page => api.stageTasks(id, { state: 'succeeded', order: 'oldest', ...page }), { limit: mostOutputs }),
    })),
  })
  return last.map(({ id, name, output, progress }, index) => {
    const outputs = read[index]?.data?.items.map(task => task.output) ?? []
    const more = progress.good > mostOutputs ? ` (the first ${mostOutputs} of ${progress.good.toLocaleString()})` : ''
    return (
      <Json
        key={id}
        label={`Output of ${sanitize(name)}${more}`}
        value={output ?? (outputs.length > 1 ? outputs : outputs[0])}
      />
    )
  })
}

/** The spec, reconstructed from the stored stages. */
function specOf({ name, priority, open, deadlineAt, stages }: JobView) {
  const work = stages.filter(({ kind }) => kind === 'work')
  return {
    name,
    priority,
    open,
    deadlineAt,
    stages: work.map(stage => ({
      name: stage.name,
      task: stage.task,
      queue: stage.queue,
      needs: stage.needs,
      open: stage.open,
      gate: stage.gate,
      files: stage.files,
      data: stage.data,
      tasks: stage.progress.total,
    })),
  }
}
