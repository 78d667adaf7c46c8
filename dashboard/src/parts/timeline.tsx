/** The timeline of a job: a line for each stage and, below it, its tasks with attempts, waits and lost leases. */
import { Group, Paper, ScrollArea, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { createContext, useContext, useState } from 'react'
import { Link } from 'wouter'
import { isFinal } from '../../../src/kernel/lifecycle.ts'
import { sanitize } from '../../../src/kernel/sanitize.ts'
import { stageLifecycle } from '../../../src/kernel/stage.ts'
import type { AttemptSpan, TimelineView } from '../../../src/protocol/jobs/timeline.ts'
import { api } from '../server.ts'
import { colourOf } from './state.tsx'
import { span, useNow } from './when.tsx'

const row = 22
const names = 190

export function Timeline({ jobId, hasEnded }: { jobId: string; hasEnded: boolean }) {
  const { data } = useQuery({
    queryKey: ['timeline', jobId],
    queryFn: () => api.timeline(jobId, { limit: 300 }),
    refetchInterval: hasEnded ? false : 2000,
  })
  const now = useNow()
  const [description, describe] = useState('Select a bar to see details.')
  if (data === undefined) return null
  const { from, to } = rangeOf(data, hasEnded ? undefined : now)
  const place = (at: string | null) => (100 * ((at === null ? to : Date.parse(at)) - from)) / (to - from)
  return (
    <Paper withBorder p="sm">
      <Group justify="space-between" mb="xs">
        <Text size="sm" c="dimmed">
          {span((to - from) / 1000)} in total
        </Text>
        <Legend />
      </Group>
      <Text size="xs" c="dimmed" mb={4} role="status">
        {description}
      </Text>
      <Describe.Provider value={describe}>
        <ScrollArea.Autosize mah={520} type="auto">
          {data.stages.map(stage => (
            <div key={stage.id}>
              <Line name={<Link href={`/stages/${stage.id}`}>{sanitize(stage.name)}</Link>} isStage>
                {stage.spans.slice(0, -1).map(({ state, from, to }) => (
                  <Bar
                    key={from + state}
                    left={place(from)}
                    right={place(to)}
                    colour={stageColour(state)}
                    title={`${sanitize(stage.name)}: ${state}`}
                  />
                ))}
                {isEnded(stage) ? null : (
                  <Bar
                    left={place(stage.spans.at(-1)!.from)}
                    right={place(stage.spans.at(-1)!.to)}
                    colour={stageColour(stage.spans.at(-1)!.state)}
                    title={stage.spans.at(-1)!.state}
                  />
                )}
              </Line>
              {data.tasks
                .filter(task => task.stageId === stage.id)
                .map(task => (
                  <Line key={task.id} name={<Link href={`/tasks/${task.id}`}>{task.id.slice(-8)}</Link>}>
                    {task.attempts.map(attempt => (
                      <Attempt key={attempt.epoch} attempt={attempt} place={place} hasEnded={hasEnded} />
                    ))}
                  </Line>
                ))}
            </div>
          ))}
        </ScrollArea.Autosize>
      </Describe.Provider>
      {data.more && (
        <Text size="xs" c="dimmed" mt="xs">
          Only the first tasks of each stage are shown. The page of a stage lists all.
        </Text>
      )}
    </Paper>
  )
}

/** The final state of a stage takes no time, so it has no bar. */
function isEnded({ spans }: TimelineView['stages'][number]): boolean {
  const last = spans.at(-1)
  return last === undefined || isFinal(stageLifecycle, last.state)
}

/** Unfinished spans last until now. */
function rangeOf({ stages, tasks }: TimelineView, now: number | undefined): { from: number; to: number } {
  const ends = [
    ...stages.flatMap(({ spans }) => spans.map(({ from }) => Date.parse(from))),
    ...tasks.flatMap(({ attempts }) =>
      attempts.flatMap(({ claimedAt, endedAt }) => [Date.parse(claimedAt), Date.parse(endedAt ?? claimedAt)]),
    ),
  ]
  const from = Math.min(...ends)
  return { from, to: Math.max(from + 1, now ?? from, ...ends) }
}

const stageColour = (state: string) => (state === 'created' || state === 'pending' ? 'gray' : colourOf('stage', state))

/** The time between claim and start is pale. The colour shows whether the attempt was lost or failed. */
function Attempt({
  attempt,
  place,
  hasEnded,
}: {
  attempt: AttemptSpan
  place(at: string | null): number
  hasEnded: boolean
}) {
  const { epoch, worker, claimedAt, startedAt, endedAt, outcome, cause } = attempt
  const isLost = cause?.includes('lost') === true
  const colour =
    outcome === null ? 'blue' : outcome === 'retrying' ? (isLost ? 'grape' : 'orange') : colourOf('task', outcome)
  const end = endedAt === null && hasEnded ? claimedAt : endedAt
  const title = `attempt ${epoch} by ${sanitize(worker ?? 'unknown')}: ${outcome ?? 'running'}${cause === null ? '' : ` (${sanitize(cause)})`}`
  return (
    <>
      {startedAt !== null && (
        <Bar
          left={place(claimedAt)}
          right={place(startedAt)}
          colour={colour}
          title={`${title}, before the start`}
          pale
        />
      )}
      <Bar
        left={place(startedAt ?? claimedAt)}
        right={place(end)}
        colour={colour}
        title={title}
        pale={startedAt === null}
      />
    </>
  )
}

function Line({
  name,
  isStage = false,
  children,
}: {
  name: React.ReactNode
  isStage?: boolean
  children: React.ReactNode
}) {
  return (
    <Group gap={0} wrap="nowrap" h={row} className={isStage ? 'timeline-stage' : undefined}>
      <Text
        size={isStage ? 'sm' : 'xs'}
        w={names}
        pl={isStage ? 0 : 'md'}
        truncate
        fw={isStage ? 600 : 400}
        style={{ flexShrink: 0 }}
      >
        {name}
      </Text>
      <div className="timeline-track">{children}</div>
    </Group>
  )
}

/** The text of a bar is shown when it is clicked, because phones have no hover. */
const Describe = createContext<(text: string) => void>(() => {})

function Bar(props: { left: number; right: number; colour: string; title: string; pale?: boolean }) {
  const width = Math.max(0.25, props.right - props.left)
  const background = `var(--mantine-color-${props.colour}-${props.pale ? 3 : 6})`
  const describe = useContext(Describe)
  return (
    <button
      type="button"
      tabIndex={-1}
      className="timeline-bar"
      title={props.title}
      aria-label={props.title}
      onClick={() => describe(props.title)}
      style={{ left: `${Math.min(props.left, 99.75)}%`, width: `${width}%`, background }}
    />
  )
}

const kinds = [
  ['teal', 'done'],
  ['blue', 'running'],
  ['orange', 'failed, retried'],
  ['grape', 'worker lost'],
  ['red', 'ended badly'],
] as const

function Legend() {
  return (
    <Group gap="sm" aria-label="Colours">
      {kinds.map(([colour, text]) => (
        <Group gap={4} key={text} wrap="nowrap">
          <div style={{ width: 10, height: 10, borderRadius: 2, background: `var(--mantine-color-${colour}-6)` }} />
          <Text size="xs">{text}</Text>
        </Group>
      ))}
    </Group>
  )
}
