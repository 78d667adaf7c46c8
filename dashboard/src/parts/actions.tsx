/** Buttons for the moves that the lifecycle allows from this state and the key's role permits. */
import { Button, Group, Modal, Text, Textarea } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { movesOpenTo } from '../../../src/kernel/lifecycle.ts'
import { useMe } from '../me.tsx'
import { api } from '../server.ts'
import { textOf } from './fault.tsx'
import { type Entity, lifecycleOf } from './state.tsx'

export interface Action {
  readonly label: string
  /** The move that it requests. If the state does not allow this move, there is no button. */
  readonly move: string
  /** The text of the confirmation. Without one, the action runs at once. */
  readonly confirmation?: string
  readonly danger?: true
  run(id: string, reason?: string): Promise<unknown>
}

const withReason = (reason?: string) => (reason === undefined || reason === '' ? {} : { reason })

export const actionsOf: Readonly<Record<'job' | 'stage' | 'task', readonly Action[]>> = {
  job: [
    { label: 'Start', move: 'submit', run: (id, reason) => api.startJob(id, withReason(reason)) },
    { label: 'Pause', move: 'pause', run: (id, reason) => api.pauseJob(id, withReason(reason)) },
    { label: 'Resume', move: 'unpause', run: (id, reason) => api.resumeJob(id, withReason(reason)) },
    {
      label: 'Retry',
      move: 'revive',
      confirmation: 'Everything that did not succeed is run again. Results of successful tasks are kept.',
      run: (id, reason) => api.retryJob(id, withReason(reason)),
    },
    {
      label: 'Cancel',
      move: 'cancel',
      confirmation: 'Running tasks are told to stop, and may finish within their grace period.',
      danger: true,
      run: (id, reason) => api.cancelJob(id, withReason(reason)),
    },
  ],
  stage: [
    {
      label: 'Retry',
      move: 'revive',
      confirmation: 'Everything in this stage that did not succeed is run again.',
      run: (id, reason) => api.retryStage(id, withReason(reason)),
    },
    { label: 'Hold', move: 'hold', run: (id, reason) => api.hold(id, withReason(reason)) },
    {
      label: 'Cancel',
      move: 'cancel',
      confirmation: 'All open tasks of this stage are cancelled.',
      danger: true,
      run: (id, reason) => api.cancelStage(id, withReason(reason)),
    },
  ],
  task: [
    { label: 'Resume', move: 'resume', run: id => api.resume(id) },
    { label: 'Retry', move: 'retry', run: id => api.retry(id) },
    { label: 'Redrive', move: 'redrive', run: id => api.redrive({ ids: [id] }) },
    {
      label: 'Cancel',
      move: 'cancel',
      confirmation: 'If the task is running, its worker is told to stop.',
      danger: true,
      run: (id, reason) => api.cancel(id, withReason(reason)),
    },
  ],
}

export function Actions({ of, id, state }: { of: 'job' | 'stage' | 'task'; id: string; state: string }) {
  const { permissions } = useMe()
  const [asked, setAsked] = useState<Action>()
  const { perform, isBusy } = usePerform()
  if (!permissions.includes('operate')) return null
  const open = movesOpenTo(lifecycleOf[of as Entity], state, 'operator') as readonly string[]
  const offered = actionsOf[of].filter(({ move }) => open.includes(move))
  return (
    <Group gap="xs">
      {offered.map(action => (
        <Button
          key={action.label}
          size="xs"
          variant={action.danger ? 'light' : 'default'}
          {...(action.danger && { color: 'red' })}
          disabled={isBusy}
          onClick={() =>
            action.confirmation === undefined ? perform(action.label, () => action.run(id)) : setAsked(action)
          }
        >
          {action.label}
        </Button>
      ))}
      {asked !== undefined && (
        <Confirm
          title={`${asked.label} this ${of}?`}
          text={asked.confirmation!}
          danger={asked.danger === true}
          onClose={() => setAsked(undefined)}
          onYes={reason => perform(asked.label, () => asked.run(id, reason))}
        />
      )}
    </Group>
  )
}

/** Runs an action, shows the result as a notification, and refreshes the page. */
export function usePerform() {
  const queries = useQueryClient()
  const mutation = useMutation({
    mutationFn: ({ run }: { label: string; run: () => Promise<unknown> }) => run(),
    onSuccess: (_, { label }) => notifications.show({ message: `${label}: done.`, color: 'teal' }),
    onError: (error, { label }) => {
      const { title, hint } = textOf(error)
      notifications.show({ title: `${label}: ${title}`, message: hint, color: 'red', autoClose: 10_000 })
    },
    onSettled: () => queries.invalidateQueries(),
  })
  return {
    perform: (label: string, run: () => Promise<unknown>) => mutation.mutate({ label, run }),
    isBusy: mutation.isPending,
  }
}

export function Confirm(props: {
  title: string
  text: string
  danger: boolean
  onClose(): void
  onYes(reason: string): void
}) {
  const [reason, setReason] = useState('')
  return (
    <Modal opened onClose={props.onClose} title={props.title} centered closeButtonProps={{ 'aria-label': 'Close' }}>
      <Text size="sm" mb="sm">
        {props.text}
      </Text>
      <Textarea
        label="Reason (recorded in the events)"
        value={reason}
        onChange={event => setReason(event.currentTarget.value)}
        autosize
        data-autofocus
      />
      <Group justify="flex-end" mt="md">
        <Button variant="default" onClick={props.onClose}>
          No
        </Button>
        <Button
          color={props.danger ? 'red' : 'teal'}
          onClick={() => {
            props.onYes(reason)
            props.onClose()
          }}
        >
          Yes
        </Button>
      </Group>
    </Modal>
  )
}
