/** The identity of the user. If the server requires a key and there is none, only the form for it is shown. */
import { Button, Center, Loader, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { createContext, type ReactNode, useContext, useState } from 'react'
import type { Me } from '../../src/protocol/admin/admin.ts'
import { Fault } from './parts/fault.tsx'
import { storedKey, storeKey, whoAmI } from './server.ts'

const MeContext = createContext<Me>({ name: null, role: 'viewer', roles: ['viewer'], permissions: [], queues: null })
export const useMe = () => useContext(MeContext)

export function WithKey({ children }: { children: ReactNode }) {
  const queries = useQueryClient()
  const [hasTried, setTried] = useState(storedKey() !== undefined)
  const { data, error, isPending } = useQuery({
    queryKey: ['me'],
    queryFn: async () => (await whoAmI()) ?? null,
    staleTime: 60_000,
  })
  if (isPending) return <Centered>{<Loader aria-label="Loading" />}</Centered>
  if (error && data === undefined) return <Centered>{<Fault error={error} />}</Centered>
  if (data && !data.permissions.includes('read')) {
    return <Centered>This key ({data.roles.join(', ')}) may not see anything. Use a key with another role.</Centered>
  }
  if (data) return <MeContext.Provider value={data}>{children}</MeContext.Provider>
  return (
    <Centered>
      <AskForKey
        wasRefused={hasTried}
        onKey={async key => {
          storeKey(key)
          await queries.invalidateQueries()
          setTried(true)
        }}
      />
    </Centered>
  )
}

const Centered = ({ children }: { children: ReactNode }) => <Center mih="100vh">{children}</Center>

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
        <Text size="sm">This server requires a key. Its operator can create one with “pawl key create”.</Text>
        <PasswordInput
          label="Key"
          value={key}
          onChange={event => setKey(event.currentTarget.value)}
          {...(wasRefused && { error: 'The key is unknown or was revoked.' })}
          data-autofocus
        />
        <Button type="submit" disabled={key.trim() === ''}>
          Sign in
        </Button>
        <Text size="xs" c="dimmed">
          The key is stored until this tab is closed.
        </Text>
      </Stack>
    </Paper>
  )
}
