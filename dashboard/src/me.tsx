/** Who looks: without a key where one is wanted, nothing is shown but the question for it. */
import { Button, Center, Loader, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { createContext, type ReactNode, useContext, useState } from 'react'
import type { Me } from '../../src/protocol/admin/keys.ts'
import { Fault } from './parts/fault.tsx'
import { keyInHand, takeKey, whoAmI } from './server.ts'

const MeContext = createContext<Me>({ name: null, role: 'viewer', roles: ['viewer'], permissions: [], queues: null })
export const useMe = () => useContext(MeContext)

export function WithKey({ children }: { children: ReactNode }) {
  const queries = useQueryClient()
  const [hasTried, setTried] = useState(keyInHand() !== undefined)
  const { data, error, isPending } = useQuery({
    queryKey: ['me'],
    queryFn: async () => (await whoAmI()) ?? null,
    staleTime: 60_000,
  })
  if (isPending) return <Middle>{<Loader aria-label="Loading" />}</Middle>
  if (error && data === undefined) return <Middle>{<Fault error={error} />}</Middle>
  if (data && !data.permissions.includes('read')) {
    return <Middle>This key ({data.roles.join(', ')}) may not look at anything: ask for one of another role.</Middle>
  }
  if (data) return <MeContext.Provider value={data}>{children}</MeContext.Provider>
  return (
    <Middle>
      <AskForKey
        wasRefused={hasTried}
        onKey={async key => {
          takeKey(key)
          await queries.invalidateQueries()
          setTried(true)
        }}
      />
    </Middle>
  )
}

const Middle = ({ children }: { children: ReactNode }) => <Center mih="100vh">{children}</Center>

function AskForKey({ wasRefused, onKey }: { wasRefused: boolean; onKey(key: string): void }) {
  const [key, setKey] = useState('')
  return (
    <Paper withBorder p="xl" maw={420} component="main">
      <Stack
        component="form"
        onSubmit={event => {
          event.preventDefault()
          onKey(key.trim())
        }}
      >
        <Title order={1} size="h3">
          Pawl
        </Title>
        <Text size="sm">This server asks for a key. Who runs it makes one with “pawl key create”.</Text>
        <PasswordInput
          label="Key"
          value={key}
          onChange={event => setKey(event.currentTarget.value)}
          {...(wasRefused && { error: 'The server does not know this key, or it was revoked.' })}
          data-autofocus
        />
        <Button type="submit" disabled={key.trim() === ''}>
          Show it
        </Button>
        <Text size="xs" c="dimmed">
          It is kept until this tab is closed.
        </Text>
      </Stack>
    </Paper>
  )
}
