/** Buttons for what may be done: the lifecycle says which moves there are from here, the key's role whether it may. */
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
  /** The move of the lifecycle that it asks for: no such move from here, no button. */
  readonly move: string
  readonly asks?: string
  readonly danger?: true
  run(id: string, reason?: string): Promise<unknown>
}

const because = (reason?: string) => (reason === undefined || reason === '' ? {} : { reason })

export const actionsOf: Readonly<Record<'job' | 'stage' | 'task', readonly Action[]>> = {
  job: [
    { label: 'Start', move: 'submit', run: (id, reason) => api.startJob(id, because(reason)) },
    { label: 'Pause', move: 'pause', run: (id, reason) => api.pauseJob(id, because(reason)) },
    { label: 'Resume', move: 'unpause', run: (id, reason) => api.resumeJob(id, because(reason)) },
    {
      label: 'Retry',
      move: 'revive',
      asks: 'What did not succeed is done again; what did is kept.',
      run: (id, reason) => api.retryJob(id, because(reason)),
    },
    {
      label: 'Cancel',
      move: 'cancel',
      asks: 'What is in hand is told to stop, and may finish within its grace.',
      danger: true,
      run: (id, reason) => api.cancelJob(id, because(reason)),
    },
  ],
  stage: [
    {
      label: 'Retry',
      move: 'revive',
      asks: 'What did not succeed in it is done again.',
      run: (id, reason) => api.retryStage(id, because(reason)),
    },
    { label: 'Hold', move: 'hold', run: (id, reason) => api.hold(id, because(reason)) },
    {
      label: 'Cancel',
      move: 'cancel',
      asks: 'Its open tasks are called off.',
      danger: true,
      run: (id, reason) => api.cancelStage(id, because(reason)),
    },
  ],
  task: [
    { label: 'Resume', move: 'resume', run: id => api.resume(id) },
    { label: 'Retry', move: 'retry', run: id => api.retry(id) },
    { label: 'Redrive', move: 'redrive', run: id => api.redrive({ ids: [id] }) },
    {
      label: 'Cancel',
      move: 'cancel',
      asks: 'The worker is told to stop.',
      danger: true,
      run: (id, reason) => api.cancel(id, because(reason)),
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
          onClick={() => (action.asks === undefined ? perform(action.label, () => action.run(id)) : setAsked(action))}
        >
          {action.label}
        </Button>
      ))}
      {asked !== undefined && (
        <Confirm
          title={`${asked.label} this ${of}?`}
          text={asked.asks!}
          danger={asked.danger === true}
          onClose={() => setAsked(undefined)}
          onYes={reason => perform(asked.label, () => asked.run(id, reason))}
        />
      )}
    </Group>
  )
}

/** Does it, says what came of it, and looks anew. */
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
        label="Why? (kept in the events)"
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
