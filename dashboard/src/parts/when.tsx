/** Relative times and durations. The exact time is in the title. */
import { useSyncExternalStore } from 'react'

const steps: readonly [number, string][] = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
  [1, 's'],
]

export function span(seconds: number): string {
  if (seconds < 1) return seconds < 0.001 ? '0 s' : `${Math.round(seconds * 1000)} ms`
  const [size, unit] = steps.find(([size]) => seconds >= size)!
  const count = seconds / size
  return `${count < 10 && size > 1 ? Math.floor(count * 10) / 10 : Math.floor(count)} ${unit}`
}

const listeners = new Set<() => void>()
let now = Date.now()
let timer: ReturnType<typeof setInterval> | undefined

/** One timer for the whole page, because a list may show a hundred times. */
function onTick(listener: () => void): () => void {
  listeners.add(listener)
  if (timer === undefined) now = Date.now()
  timer ??= setInterval(() => {
    now = Date.now()
    for (const each of listeners) each()
  }, 1000)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** The current time, updated every second. */
export function useNow(): number {
  return useSyncExternalStore(onTick, () => now)
}

export function Ago({ at }: { at: string | null }) {
  const now = useNow()
  if (at === null) return <>–</>
  const seconds = (now - Date.parse(at)) / 1000
  const text = Math.abs(seconds) < 1 ? 'just now' : seconds < 0 ? `in ${span(-seconds)}` : `${span(seconds)} ago`
  return (
    <time dateTime={at} title={new Date(at).toLocaleString()}>
      {text}
    </time>
  )
}

/** How long something took, or has taken so far. */
export function Duration({ from, to }: { from: string | null; to: string | null }) {
  const now = useNow()
  if (from === null) return <>–</>
  return <>{span(Math.max(0, (to === null ? now : Date.parse(to)) - Date.parse(from)) / 1000)}</>
}
