/** Actions on several jobs at once. Jobs whose state does not allow an action are skipped. */
import { Button, Group, Text } from '@mantine/core'
import { useState } from 'react'
import { jobLifecycle } from '../../../src/kernel/job.ts'
import { movesOpenTo } from '../../../src/kernel/lifecycle.ts'
import type { JobView } from '../../../src/protocol/jobs/jobs.ts'
import { useMe } from '../me.tsx'
import { type Action, actionsOf, Confirm, usePerform } from './actions.tsx'
import { textOf } from './fault.tsx'

export function BulkActions({ jobs, onDone }: { jobs: readonly JobView[]; onDone(): void }) {
  const { permissions } = useMe()
  const [asked, setAsked] = useState<Action>()
  const { perform, isBusy } = usePerform()
  if (jobs.length === 0 || !permissions.includes('operate')) return null
  const able = ({ move }: Action) =>
    jobs.filter(({ state }) => (movesOpenTo(jobLifecycle, state, 'operator') as readonly string[]).includes(move))
  return (
    <Group gap="xs">
      <Text size="sm">{jobs.length} selected</Text>
      {actionsOf.job.map(action => {
        const count = able(action).length
        return count === 0 ? null : (
          <Button key={action.label} size="xs" variant="default" disabled={isBusy} onClick={() => setAsked(action)}>
            {action.label} {count}
          </Button>
        )
      })}
      {asked !== undefined && (
        <Confirm
          title={`${asked.label} ${able(asked).length} jobs?`}
          text={
            asked.confirmation ?? 'The action runs for each job separately. If one is refused, the others continue.'
          }
          danger={asked.danger === true}
          onClose={() => setAsked(undefined)}
          onYes={reason =>
            perform(asked.label, async () => {
              const done = await Promise.allSettled(able(asked).map(({ id }) => asked.run(id, reason)))
              onDone()
              const refused = done.filter(each => each.status === 'rejected')
              if (refused.length === 0) return
              const { title, hint } = textOf(refused[0]!.reason)
              throw new Error(`${refused.length} of ${done.length} were refused. First reason: ${title} ${hint}`)
            })
          }
        />
      )}
    </Group>
  )
}
