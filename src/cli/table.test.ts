import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sanitize } from '../kernel/sanitize.ts'
import { formatDuration, relativeTime } from './durations.ts'
import { cut, cutStart, lineWidth, render, widthOf } from './styled-line.ts'
import { type Column, table } from './table.ts'

interface Row {
  readonly id: string
  readonly count: number
  readonly text: string
}

const columns: readonly Column<Row>[] = [
  { header: 'ID', value: ({ id }) => id, cut: 'start', minWidth: 5 },
  { header: 'COUNT', value: ({ count }) => String(count), align: 'right' },
  { header: 'TEXT', value: ({ text }) => text, optional: true },
]
const rows: readonly Row[] = [
  { id: '0123456789', count: 7, text: 'short' },
  { id: '9876543210', count: 1234, text: 'a text that is longer than the others' },
]
const shown = (width: number) => table(rows, columns, width).map(line => render(line, { colour: false, width: 1000 }))

test('numbers stand under each other, and each column is as wide as it must be', () => {
  assert.deepEqual(shown(80), [
    'ID          COUNT  TEXT',
    '0123456789      7  short',
    '9876543210   1234  a text that is longer than the others',
  ])
})

test('where there is little room the widest is cut first, and what can be spared goes', () => {
  assert.deepEqual(shown(30), ['ID          COUNT  TEXT', '0123456789      7  short', '9876543210   1234  a text tha…'])
  assert.deepEqual(shown(14), ['ID       COUNT', '…456789      7', '…543210   1234'])
  for (let width = 12; width < 60; width++) {
    for (const line of table(rows, columns, width)) assert.ok(lineWidth(line) <= width, `at ${width}`)
  }
})

test('wide characters, marks and emoji are counted as a terminal shows them', () => {
  assert.deepEqual(['abc', '名前', 'e\u0301', '👩‍👩‍👧‍👦'].map(widthOf), [3, 4, 1, 2])
  assert.equal(cut('名前が長い', 6), '名前…')
  assert.equal(cutStart('名前が長い', 6), '…長い')
})

test('whatever acts on a terminal is shown as an escape', () => {
  assert.equal(sanitize('a\u001b[31m\n\t\u009b\u202e\u200b\ud800z'), 'a\\x1b[31m\\n\\t\\x9b\\u202e\\u200b\\ud800z')
  assert.equal(sanitize('ordinary: äß→名 "quoted" \\'), 'ordinary: äß→名 "quoted" \\')
})

test('times are told as people tell them', () => {
  const now = Date.parse('2026-01-02T00:00:00Z')
  const at = (seconds: number) => relativeTime(new Date(now - seconds * 1000).toISOString(), now)
  assert.deepEqual(
    [at(0.4), at(14), at(120), at(7200), at(200_000), at(-30)],
    ['now', '14 s ago', '2 min ago', '2 h ago', '2 d ago', 'in 30 s'],
  )
  assert.deepEqual([formatDuration(0), formatDuration(0.34), formatDuration(59.9)], ['0 s', '0.3 s', '59 s'])
})
