import {
  ActionIcon,
  AppShell,
  Badge,
  Burger,
  Group,
  NavLink,
  Text,
  UnstyledButton,
  useComputedColorScheme,
  useMantineColorScheme,
} from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { lazy, Suspense } from 'react'
import { Link, Route, Router, Switch, useLocation } from 'wouter'
import { sanitize } from '../../src/kernel/sanitize.ts'
import { useHashPath, useHashSearch } from './hash.ts'
import { Live, useLink } from './live.tsx'
import { useMe } from './me.tsx'
import { Boundary } from './parts/boundary.tsx'
import logo from './pawl.svg'
import { storedKey, storeKey } from './server.ts'
import { useDeadLetterGroups, useWaiting } from './waiting.ts'

const overview = import('./pages/overview.tsx').then(page => ({ default: page.Overview }))
// Most visits begin here, so loading starts at once.
const Overview = lazy(() => overview)
const Jobs = lazy(() => import('./pages/jobs.tsx').then(page => ({ default: page.Jobs })))
const Job = lazy(() => import('./pages/job.tsx').then(page => ({ default: page.Job })))

const Stage = lazy(() => import('./pages/stage.tsx').then(page => ({ default: page.Stage })))
const Task = lazy(() => import('./pages/task.tsx').then(page => ({ default: page.Task })))
const Gates = lazy(() => import('./pages/gates.tsx').then(page => ({ default: page.Gates })))
const DeadLetters = lazy(() => import('./pages/dead-letters.tsx').then(page => ({ default: page.DeadLetters })))

export function App() {
  return (
    <Router hook={useHashPath} searchHook={useHashSearch}>
      <Live>
        <Frame />
      </Live>
    </Router>
  )
}

function Frame() {
  const [isOpen, { toggle, close }] = useDisclosure()
  const [location] = useLocation()
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 200, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
      padding="md"
    >
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={isOpen} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Menu" />
            <Link href="/" className="plain">
              <Group gap="xs" wrap="nowrap">
                <img src={logo} width={26} height={26} alt="" />
                <Text fw={700}>Pawl</Text>
              </Group>
            </Link>
          </Group>
          <Group gap="sm" wrap="nowrap">
            <Connection />
            <Identity />
            <SchemeSwitch />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" component="nav" aria-label="Pages">
        <Pages onGo={close} />
      </AppShell.Navbar>
      <AppShell.Main>
        <Boundary key={location}>
          <Suspense>
            <Switch>
              <Route path="/" component={Overview} />
              <Route path="/jobs" component={Jobs} />
              <Route path="/jobs/:id">{({ id }) => <Job id={id} />}</Route>
              <Route path="/stages/:id">{({ id }) => <Stage id={id} />}</Route>
              <Route path="/tasks/:id">{({ id }) => <Task id={id} />}</Route>
              <Route path="/gates" component={Gates} />
              <Route path="/dead-letters" component={DeadLetters} />
              <Route>This page does not exist.</Route>
            </Switch>
          </Suspense>
        </Boundary>
      </AppShell.Main>
    </AppShell>
  )
}

function Pages({ onGo }: { onGo(): void }) {
  const [location] = useLocation()
  const { data: waiting } = useWaiting()
  const { data: troubles = [] } = useDeadLetterGroups()
  const letters = troubles.reduce((sum, { count }) => sum + count, 0)
  const isHere = (path: string) => (path === '/' ? location === '/' : location.startsWith(path))
  const pages = [
    { path: '/', label: 'Overview', count: 0 },
    { path: '/jobs', label: 'Jobs', count: 0 },
    { path: '/gates', label: 'Gates', count: waiting?.total ?? 0 },
    { path: '/dead-letters', label: 'Dead letters', count: letters },
  ]
  return pages.map(({ path, label, count }) => (
    <NavLink
      key={path}
      component={Link}
      href={path}
      label={label}
      active={isHere(path)}
      {...(isHere(path) && { 'aria-current': 'page' as const })}
      onClick={onGo}
      rightSection={
        count > 0 ? (
          <Badge size="sm" color="orange">
            {count}
          </Badge>
        ) : undefined
      }
    />
  ))
}

const links = {
  joining: { color: 'gray', text: 'connecting', title: 'Connecting to the event feed.' },
  live: { color: 'teal', text: 'live', title: 'This page is up to date.' },
  lost: { color: 'red', text: 'connection lost', title: 'The server cannot be reached. Trying again.' },
  paused: { color: 'gray', text: 'paused', title: 'This tab is hidden. Updates continue when it is visible.' },
} as const

function Connection() {
  const { color, text, title } = links[useLink()]
  return (
    <Badge color={color} variant="dot" title={title} role="status" className="state">
      {text}
    </Badge>
  )
}

function forgetKey(): void {
  storeKey(undefined)
  location.reload()
}

function Identity() {
  const { name, roles } = useMe()
  const roleList = roles.join(', ')
  return (
    <Text size="xs" c="dimmed" visibleFrom="sm">
      {name === null ? roleList : `${sanitize(name)} (${roleList})`}
      {storedKey() !== undefined && (
        <UnstyledButton fz="xs" td="underline" ml={6} onClick={forgetKey}>
          forget the key
        </UnstyledButton>
      )}
    </Text>
  )
}

function SchemeSwitch() {
  const { setColorScheme } = useMantineColorScheme()
  const now = useComputedColorScheme('light')
  const next = now === 'light' ? 'dark' : 'light'
  return (
    <ActionIcon variant="default" aria-label={`Switch to ${next} mode`} onClick={() => setColorScheme(next)}>
      {next === 'dark' ? '☾' : '☀'}
    </ActionIcon>
  )
}
