import assert from 'node:assert/strict'
import { test } from 'node:test'
import { causeLimits, describeError, type ErrorCause } from './error-cause.ts'
import { errorLines, errorText } from './error-lines.ts'

/** The messages of an error and of its causes. */
function messages({ message, cause, errors = [] }: ErrorCause): unknown[] {
  return [message, ...(cause ? messages(cause) : []), ...errors.map(messages)]
}

test('an error is kept with everything that led to it', () => {
  const socket = Object.assign(new TypeError('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  const both = new AggregateError([socket, new Error('timed out')], 'no address answered')
  const thrown = new Error('the bank is away', { cause: new Error('fetch failed', { cause: both }) })
  const kept = describeError(thrown)
  assert.deepEqual(messages(kept), [
    'the bank is away',
    'fetch failed',
    'no address answered',
    ['connect ECONNREFUSED'],
    ['timed out'],
  ])
  assert.deepEqual([kept.name, kept.cause?.cause?.name], [undefined, 'AggregateError'])
  assert.equal(kept.cause?.cause?.errors?.[0]?.name, 'TypeError')
  assert.match(kept.cause?.stack ?? '', /error-cause\.test/)
})

test('an error that is its own cause is kept once', () => {
  const first: Error & { cause?: unknown } = new Error('first')
  const second = new Error('second', { cause: first })
  first.cause = second
  const all: Error & { errors?: unknown } = new Error('all')
  all.errors = [all, first]
  assert.deepEqual(messages(describeError(first)), ['first', 'second'])
  assert.deepEqual(messages(describeError(all)), ['all', ['first', 'second']])
})

test('causes are limited in depth, number and size, and say that some were omitted', () => {
  let deep = new Error('0')
  for (let n = 1; n <= 50; n++) deep = new Error(`${n}`, { cause: deep })
  assert.deepEqual(messages(describeError(deep)), [
    ...Array.from({ length: causeLimits.depth + 1 }, (_, n) => `${50 - n}`),
    'Further errors were omitted.',
  ])
  const many = describeError(new AggregateError(Array.from({ length: 1000 }, (_, n) => new Error(`${n}`))))
  assert.equal(many.errors?.length, causeLimits.count + 1)
  assert.equal(many.errors?.at(-1)?.message, 'Further errors were omitted.')
  const large = describeError(
    new AggregateError(
      Array.from({ length: 10 }, () => new Error('x'.repeat(30_000))),
      'all',
    ),
  )
  assert.ok(JSON.stringify(large).length < causeLimits.characters + 21_000)
})

test('whatever is thrown has a message that says something', () => {
  const message = (thrown: unknown) => describeError(thrown).message
  assert.equal(message({ status: 404 }), '{"status":404}')
  assert.equal(message({ message: 'no such row', code: 'PGRST116' }), 'no such row')
  assert.equal(message(undefined), 'undefined')
  assert.equal(message(''), '')
  assert.equal(message([1, 'two']), '[1,"two"]')
  assert.equal(
    message(new AggregateError([new Error('refused ::1'), new Error('refused 127.0.0.1')])),
    'refused ::1; refused 127.0.0.1',
  )
  const empty = new AggregateError([])
  empty.errors.push(empty)
  assert.match(message(empty), /AggregateError/)
  const hostile = {
    get message() {
      throw new Error('not for you')
    },
    toJSON() {
      throw new Error('neither')
    },
  }
  assert.equal(message(hostile), '[object Object]')
  assert.deepEqual(messages(describeError(new Error('a\0b', { cause: 'just text' }))), ['a\uFFFDb', 'just text'])
})

/** Every operation on it throws, even `Array.isArray` and `instanceof`. */
function revoked(): object {
  const { proxy, revoke } = Proxy.revocable([], {})
  revoke()
  return proxy
}

/** Every trap throws another such value. */
function trapped(target: object): object {
  const refuse = () => {
    throw trapped({})
  }
  const traps = new Proxy({}, { get: () => refuse })
  return new Proxy(target, traps)
}

test('a thrown value that cannot be read is described all the same, and so is an error that holds one', () => {
  const unreadable = 'The thrown value could not be read.'
  for (const value of [revoked(), trapped({}), trapped([]), trapped(new Error('x')), trapped(() => {})]) {
    assert.deepEqual(describeError(value), { message: unreadable })
    const { message, cause } = describeError(new Error('outer', { cause: value }))
    assert.deepEqual([message, cause], ['outer', { message: unreadable }])
    const { errors } = describeError(new AggregateError([new Error('a'), value, new Error('b')], 'both'))
    assert.deepEqual(
      errors?.map(each => each.message),
      ['a', unreadable, 'b'],
    )
    assert.equal(describeError(new AggregateError([value, new Error('b')])).message, `${unreadable}; b`)
  }
})

test('a list of errors that cannot be read, or that never ends, is described as far as it can be', () => {
  const all = (errors: unknown) => Object.assign(new Error('all'), { errors })
  assert.equal(describeError(all(revoked())).message, 'all')
  const list = [new Error('a'), new Error('b')]
  Object.defineProperty(list, 1, {
    get() {
      throw new Error('not for you')
    },
  })
  assert.deepEqual(messages(describeError(all(list))), ['all', ['a'], ['The thrown value could not be read.']])
  const looping = all(null)
  const endless = Object.assign([looping], {
    *[Symbol.iterator]() {
      for (let n = 0; n < 1e6; n++) yield looping
      throw new Error('it was read without end')
    },
  })
  Object.assign(looping, { errors: endless })
  assert.deepEqual(messages(describeError(looping)), ['all'])
})

test('an error is shown with the stacks of its causes, and the lines of the user are told apart from those of packages', () => {
  const stack = `TypeError: no
    at parse (file:///home/ann/app/src/parse.ts:12:9)
    at async read (/home/ann/app/src/(group)/read.ts:3:1)
    at run (/home/ann/app/node_modules/pawl/dist/worker/attempt.js:1:2)
    at node:internal/process/task_queues:95:5
    at async Promise.all (index 0)`
  const error = { message: 'no', name: 'TypeError', stack, cause: { message: 'line 7', errors: [{ message: 'x' }] } }
  assert.deepEqual(
    errorLines(error).map(({ kind, depth }) => `${kind} ${depth}`),
    ['text 0', 'place 0', 'place 0', 'inside 0', 'inside 0', 'inside 0', 'text 1', 'text 2'],
  )
  assert.match(errorText(error), /\n {2}Caused by: Error: line 7\n {4}Error 1 of 1: Error: x$/)
})

test('a stack of another language is shown under the message', () => {
  const stack = 'Traceback (most recent call last):\n  File "job.py", line 3, in run'
  assert.equal(
    errorText({ message: 'division by zero', name: 'ZeroDivisionError', stack }),
    `ZeroDivisionError: division by zero\n${stack}`,
  )
})
