import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type LogOptions, makeLog } from './log.ts'

const now = () => new Date('2026-03-04T05:06:07.089Z')

function logged(options: LogOptions & { isTTY?: boolean }, say: (log: ReturnType<typeof makeLog>) => void): string {
  const parts: string[] = []
  const out = { isTTY: options.isTTY ?? false, write: (part: string) => parts.push(part) }
  say(makeLog({ now, env: {}, ...options, out }))
  return parts.join('')
}

test('for machines each line is JSON with its time, level, word and correlation', () => {
  const text = logged({}, log => {
    log('task.refused', { id: 't1', correlationId: 'order-7' })
    log('worker.stopped', { leftBehind: 0, time: 'mine', event: 'mine' })
  })
  const lines = text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
  assert.deepEqual(lines, [
    { time: now().toISOString(), level: 'warn', event: 'task.refused', id: 't1', correlationId: 'order-7' },
    { time: now().toISOString(), level: 'info', event: 'worker.stopped', leftBehind: 0 },
  ])
})

test('for people it is a line of columns, with colour on a terminal only', () => {
  const say = (log: ReturnType<typeof makeLog>) => log('chore.failed', { chore: 'rescue', error: 'a b\n\x1b[2Jc' })
  const plain = '05:06:07.089 warn  chore.failed chore=rescue error="a b\\n\\u001b[2Jc"\n'
  assert.equal(logged({ format: 'pretty' }, say), plain)
  assert.equal(logged({ isTTY: true, env: { NO_COLOR: '1' } }, say), plain)
  const coloured = logged({ isTTY: true }, say)
  assert.notEqual(coloured, plain)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control characters
  assert.equal(coloured.replace(/\x1b\[\d+m/g, ''), plain)
})

test('for people a stack has lines of its own, none of which looks like a line of the log', () => {
  const stack = 'Error: no\n05:06:07.089 error forged\x1b[2J\n    at work (a.ts:1:2)'
  const text = logged({ format: 'pretty', level: 'debug' }, log => log('task.stack', { id: 't1', stack }))
  const lines = ['    Error: no', '    05:06:07.089 error forged\\x1b[2J', '        at work (a.ts:1:2)']
  assert.equal(text, ['05:06:07.089 debug task.stack id=t1', ...lines, ''].join('\n'))
  assert.equal(JSON.parse(logged({ level: 'debug' }, log => log('task.stack', { stack }))).stack, stack)
})

test('a log never throws, whatever it is given', () => {
  const circle: Record<string, unknown> = {}
  circle.self = circle
  const odd = { circle, big: 10n, error: new TypeError('no'), none: undefined, run: () => 1 }
  for (const format of ['json', 'pretty'] as const) {
    const text = logged({ format }, log => log('odd', odd))
    assert.match(text, /unwritable/)
    assert.match(text, /odd/)
    assert.equal(text.split('\n').length, 2)
  }
  const text = logged({}, log => log('odd', { error: new TypeError('no'), big: 10n }))
  assert.deepEqual([JSON.parse(text).error.message, JSON.parse(text).big], ['no', '10'])
})

test('only what matters enough is told, and the facts may say how much it matters', () => {
  const text = logged({ level: 'warn' }, log => {
    log('chore.done', {})
    log('worker.stopped', {})
    log('integrity.broken', { rule: 'I1' })
    log('worker.stopped', { level: 'error' })
  })
  assert.deepEqual(
    text
      .trimEnd()
      .split('\n')
      .map(line => [JSON.parse(line).event, JSON.parse(line).level]),
    [
      ['integrity.broken', 'error'],
      ['worker.stopped', 'error'],
    ],
  )
})

test('a log never holds a key, a password or an Authorization header', () => {
  const key = `pawl_${'k'.repeat(43)}`
  const facts = {
    error: new Error(`connect postgres://ada:sesame@db/pawl: refused ${key}`),
    headers: { authorization: `Bearer ${key}`, Authorization: 'Basic c2VzYW1lOnNlc2FtZQ==' },
  }
  for (const format of ['json', 'pretty'] as const) {
    const text = logged({ format }, log => log('http.bug', facts))
    assert.match(text, /http\.bug/)
    assert.doesNotMatch(text, /kkkk|sesame|c2Vz/)
  }
  assert.equal(JSON.parse(logged({}, log => log('http.bug', facts))).event, 'http.bug')
})
