/** Reads Server-Sent Events as a browser does: an event is complete after its empty line. */
import { once } from 'node:events'

export interface SentEvent {
  readonly id: string
  readonly type: string
  readonly data: { readonly id: string; readonly type: string; readonly jobId: string | null }
}

export interface EventSource {
  readonly events: readonly SentEvent[]
  readonly comments: readonly string[]
  /** The id that a browser would send as `Last-Event-ID` when it reconnects. */
  lastId(): string | undefined
  /** Resolves when either side has closed the connection. */
  readonly ended: Promise<void>
  /** Cuts the connection. */
  cut(): Promise<void>
}

export async function openEvents(url: string, query = '', headers: Record<string, string> = {}): Promise<EventSource> {
  const over = new AbortController()
  const response = await fetch(`${url}/v1/events${query}`, {
    headers: { accept: 'text/event-stream', ...headers },
    signal: over.signal,
  })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  const events: SentEvent[] = []
  const comments: string[] = []
  let last: string | undefined
  const reading = read(response, frame => {
    if (frame.startsWith(':')) comments.push(frame)
    else if (frame.startsWith('id:')) {
      last = /^id: (.*)/.exec(frame)![1]
      // Without data there is no event.
      if (/^data:/m.test(frame)) events.push(eventIn(frame))
    }
  }).catch(() => {})
  return {
    events,
    comments,
    lastId: () => last,
    ended: reading,
    async cut() {
      const aborted = once(over.signal, 'abort')
      over.abort()
      await Promise.all([aborted, reading])
    },
  }
}

async function read(response: Response, take: (frame: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const part of response.body!) {
    rest += decoder.decode(part as Uint8Array, { stream: true })
    const frames = rest.split('\n\n')
    rest = frames.pop()!
    for (const frame of frames) take(frame)
  }
}

function eventIn(frame: string): SentEvent {
  const fields = Object.fromEntries(
    frame.split('\n').map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
  )
  return { id: fields.id!, type: fields.event!, data: JSON.parse(fields.data!) }
}
