import '@mantine/core/styles.css'
import '@mantine/notifications/styles.css'
import './pawl.css'
import { createTheme, MantineProvider } from '@mantine/core'
import { Notifications } from '@mantine/notifications'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { createRoot } from 'react-dom/client'
import { App } from './app.tsx'
import { WithKey } from './me.tsx'
import { logCaught } from './parts/boundary.tsx'

const queries = new QueryClient({
  defaultOptions: { queries: { staleTime: 500, retry: 1, refetchOnWindowFocus: true } },
})
const theme = createTheme({
  primaryColor: 'teal',
  primaryShade: 9,
  autoContrast: true,
  fontFamily: 'system-ui, sans-serif',
  cursorType: 'pointer',
})
const nonce = document.querySelector<HTMLMetaElement>('meta[name=nonce]')?.content
// The library that blocks scrolling under a dialog inserts a style sheet, and reads its nonce from here.
Object.assign(globalThis, { __webpack_nonce__: nonce })

createRoot(document.getElementById('root')!, { onCaughtError: logCaught }).render(
  <MantineProvider theme={theme} defaultColorScheme="auto" {...(nonce && { getStyleNonce: () => nonce })}>
    <Notifications position="bottom-right" />
    <QueryClientProvider client={queries}>
      <WithKey>
        <App />
      </WithKey>
    </QueryClientProvider>
  </MantineProvider>,
)
