/** The time of a job: a line for each stage and, below it, for its tasks, with attempts, waits and what was lost. */
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

export function Timeline({ jobId, isOver }: { jobId: string; isOver: boolean }) {
  const { data } = useQuery({
    queryKey: ['timeline', jobId],
    queryFn: () => api.timeline(jobId, { limit: 300 }),
    refetchInterval: isOver ? false : 2000,
  })
  const now = useNow()
  const [told, tell] = useState('Touch a bar to see what it is.')
  if (data === undefined) return null
  const { from, to } = rangeOf(data, isOver ? undefined : now)
  const place = (at: string | null) => (100 * ((at === null ? to : Date.parse(at)) - from)) / (to - from)
  return (
    <Paper withBorder p="sm">
      <Group justify="space-between" mb="xs">
        <Text size="sm" c="dimmed">
          {span((to - from) / 1000)} from end to end
        </Text>
        <Legend />
      </Group>
      <Text size="xs" c="dimmed" mb={4} role="status">
        {told}
      </Text>
      <Tell.Provider value={tell}>
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
                {hasEnded(stage) ? null : (
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
                      <Attempt key={attempt.epoch} attempt={attempt} place={place} isOver={isOver} />
                    ))}
                  </Line>
                ))}
            </div>
          ))}
        </ScrollArea.Autosize>
      </Tell.Provider>
      {data.more && (
        <Text size="xs" c="dimmed" mt="xs">
          Only the first tasks of each stage are shown; a stage’s own page has all of them.
        </Text>
      )}
    </Paper>
  )
}

/** How a stage ended is no time that it takes. */
function hasEnded({ spans }: TimelineView['stages'][number]): boolean {
  const last = spans.at(-1)
  return last === undefined || isFinal(stageLifecycle, last.state)
}

/** What goes on lasts until now. */
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

/** Claimed and not yet begun is pale; one that was lost or failed is told by its colour. */
function Attempt({
  attempt,
  place,
  isOver,
}: {
  attempt: AttemptSpan
  place(at: string | null): number
  isOver: boolean
}) {
  const { epoch, worker, claimedAt, startedAt, endedAt, outcome, cause } = attempt
  const isLost = cause?.includes('lost') === true
  const colour =
    outcome === null ? 'blue' : outcome === 'retrying' ? (isLost ? 'grape' : 'orange') : colourOf('task', outcome)
  const end = endedAt === null && isOver ? claimedAt : endedAt
  const title = `attempt ${epoch} by ${sanitize(worker ?? 'nobody')}: ${outcome ?? 'in hand'}${cause === null ? '' : ` (${sanitize(cause)})`}`
  return (
    <>
      {startedAt !== null && (
        <Bar
          left={place(claimedAt)}
          right={place(startedAt)}
          colour={colour}
          title={`${title}, before it began`}
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

/** What a bar says is shown when it is touched, for there is nothing that hovers on a phone. */
const Tell = createContext<(said: string) => void>(() => {})

function Bar(props: { left: number; right: number; colour: string; title: string; pale?: boolean }) {
  const width = Math.max(0.25, props.right - props.left)
  const background = `var(--mantine-color-${props.colour}-${props.pale ? 3 : 6})`
  const tell = useContext(Tell)
  return (
    <button
      type="button"
      tabIndex={-1}
      className="timeline-bar"
      title={props.title}
      aria-label={props.title}
      onClick={() => tell(props.title)}
      style={{ left: `${Math.min(props.left, 99.75)}%`, width: `${width}%`, background }}
    />
  )
}

const kinds = [
  ['teal', 'done'],
  ['blue', 'in hand'],
  ['orange', 'failed, tried again'],
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
