/** Shows a value as formatted text, never as markup. */
import { Code, CopyButton, Group, Text, UnstyledButton } from '@mantine/core'
import { sanitizeLines } from '../../../src/kernel/sanitize.ts'

const longest = 200_000

export function Json({ value, label }: { value: unknown; label: string }) {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2)
  const shown = sanitizeLines((text ?? 'null').slice(0, longest))
  return (
    <div>
      <Group justify="space-between" mb={4}>
        <Text size="sm" fw={600}>
          {label}
        </Text>
        <Copy text={text ?? 'null'} what={label} />
      </Group>
      <Code block className="code" tabIndex={0} mah={360} style={{ overflow: 'auto' }}>
        {shown}
        {(text ?? '').length > longest && '\n… (truncated; copy it to get the whole text)'}
      </Code>
    </div>
  )
}

export function Copy({ text, what }: { text: string; what: string }) {
  return (
    <CopyButton value={text}>
      {({ copied, copy }) => (
        <UnstyledButton onClick={copy} aria-label={`Copy ${what}`} fz="xs" td="underline">
          {copied ? 'copied' : 'copy'}
        </UnstyledButton>
      )}
    </CopyButton>
  )
}
