/** The log of a task, which grows while the task runs. */
import { Code, Text } from '@mantine/core'
import { useEffect, useRef, useState } from 'react'
import { sanitize } from '../../../src/kernel/sanitize.ts'
import type { LogLineView } from '../../../src/protocol/tasks/logs.ts'
import { api } from '../server.ts'

const refreshMs = 1000
const mostLines = 5000

export function Logs({ id, hasEnded }: { id: string; hasEnded: boolean }) {
  const [lines, setLines] = useState<readonly LogLineView[]>([])
  const behind = useRef<string | undefined>(undefined)
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let isGone = false
    const readNew = async () => {
      while (!document.hidden) {
        const cursor = behind.current
        const page = await api.logs(id, { limit: 1000, ...(cursor !== undefined && { cursor }) }).catch(() => undefined)
        if (isGone || page === undefined) break
        behind.current = page.behind
        if (page.items.length > 0) setLines(old => [...old, ...page.items].slice(-mostLines))
        if (page.next === null) break
      }
      if (!isGone && !hasEnded) timer = setTimeout(readNew, refreshMs)
    }
    void readNew()
    return () => {
      isGone = true
      clearTimeout(timer)
    }
  }, [id, hasEnded])
  if (lines.length === 0) return <Text c="dimmed">{hasEnded ? 'No log lines.' : 'No log lines yet.'}</Text>
  return (
    <Code block className="code" tabIndex={0} mah={480} style={{ overflow: 'auto' }} aria-label="Logs">
      {lines.map(({ n, epoch, at, level, message, facts }) => (
        <div key={`${epoch} ${n}`}>
          {new Date(at).toLocaleTimeString()} {level.padEnd(5)} {sanitize(message)}
          {facts !== null && ` ${sanitize(JSON.stringify(facts))}`}
        </div>
      ))}
    </Code>
  )
}
