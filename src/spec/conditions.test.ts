import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkCondition, evaluate, evaluateForEach, evaluateWhen, type Scope, stagesNamedIn } from './conditions.ts'
import { Meter } from './meter.ts'

const scope: Scope = {
  input: { count: 2, ratio: 0.5, list: [1, 2, 3], name: 'a', nothing: null, big: 2 ** 53 },
  stages: {
    x: { state: 'succeeded', output: { n: 4, kind: 'invoice', pages: [{ no: 1 }, { no: 2 }] } },
    'with-hyphen': { state: 'skipped', output: null },
  },
}

test('numbers of the input and of outputs compare with those in a condition, whole or not', () => {
  const holds = [
    'stages.x.output.n > 3',
    'stages.x.output.n >= 4 && stages.x.output.n < 4.5',
    'input.count == 2',
    '2 == input.count',
    'input.count == 2.0',
    'input.count != 3',
    'input.count + 1 == 3',
    '1 - input.ratio == 0.5',
    'input.count * 2 > 3.5',
    'input.count / 4 == 0.5',
    'input.list[0] % 2 == 1',
    'input.list[2] % input.count == 1',
    'input.list[input.count] == 3',
    'input.count in [1, 2]',
    '2 in input.list',
    'input.list == [1, 2, 3]',
    'size(input.list) == input.list[2]',
    '-input.count < 0',
  ]
  for (const text of holds) {
    assert.equal(checkCondition(text, 'boolean'), undefined, text)
    assert.equal(evaluateWhen(text, scope), true, text)
  }
})

test('what an expression gives is plain JSON', () => {
  const gives: [string, unknown][] = [
    ['1 + 2', 3],
    ['7u', 7],
    ['[1, 2.5, "a", null, true]', [1, 2.5, 'a', null, true]],
    ['{"a": 1, "b": [2]}', { a: 1, b: [2] }],
    ['size(input.list)', 3],
    ['timestamp("2026-01-02T03:04:05Z")', '2026-01-02T03:04:05.000Z'],
    ['stages.x.output', { n: 4, kind: 'invoice', pages: [{ no: 1 }, { no: 2 }] }],
    ['input.nothing', null],
    ['input.big', 2 ** 53],
  ]
  for (const [text, expected] of gives) assert.deepEqual(evaluate(text, scope), expected, text)
})

test('what JSON cannot hold is an error, never a wrong value', () => {
  assert.throws(() => evaluate('9007199254740993', scope), { message: /9007199254740993 is too large/ })
  assert.throws(() => evaluate('1.0 / 0.0', scope), { message: /not finite/ })
  for (const text of ['b"bytes"', 'duration("3s")', 'type(1)']) {
    assert.throws(() => evaluate(text, scope), { message: /not JSON/ }, text)
  }
})

test('an expression cannot change what it looks at', () => {
  const pages = evaluateForEach('stages.x.output.pages', scope)
  pages.push('more')
  assert.equal((scope.stages.x!.output as { pages: unknown[] }).pages.length, 2)
})

test('forEach gives a list, filtered or made anew', () => {
  assert.deepEqual(evaluateForEach('stages.x.output.pages', scope), [{ no: 1 }, { no: 2 }])
  assert.deepEqual(evaluateForEach('input.list.filter(n, n > 1).map(n, {"n": n * 2})', scope), [{ n: 4 }, { n: 6 }])
})

test('a condition that gives no truth value, and a forEach that gives no list, are errors', () => {
  assert.throws(() => evaluateWhen('input.count', scope), { message: 'it must return true or false, not a number' })
  assert.throws(() => evaluateWhen('input.nothing', scope), { message: 'it must return true or false, not null' })
  assert.throws(() => evaluateForEach('input', scope), { message: 'it must return a list, not an object' })
  assert.throws(() => evaluateForEach('input.name', scope), { message: 'it must return a list, not a string' })
  assert.equal(checkCondition('1 + 2', 'boolean'), 'it returns int, not true or false')
  assert.equal(checkCondition('"a"', 'list'), 'it returns string, not a list')
})

test('a missing field and a wrong type are told in a few words, with the place', () => {
  assert.throws(() => evaluate('input.nope > 1', scope), { message: "there is no field 'nope', at character 7" })
  assert.throws(() => evaluate('stages.x.output.pages.no', scope), { message: /there is no field 'no'/ })
  assert.throws(() => evaluate('"a" + input.count', scope), {
    message: 'string + double is not possible, at character 1',
  })
  assert.throws(() => evaluate('input.list[7]', scope), { message: /index 7 >= size 3/ })
})

test('has() tells whether a field is there, also where there is no input at all', () => {
  assert.equal(evaluateWhen('has(input.count) && !has(input.nope)', scope), true)
  assert.equal(evaluateWhen('has(input.nope)', { input: null, stages: {} }), false)
})

test('a misspelt expression is refused before it is run, with the place', () => {
  assert.equal(checkCondition('stages.x.output.n >'), 'Unexpected token: EOF, at character 20')
  assert.equal(checkCondition('stage.x.output'), "there is no 'stage' (did you mean 'stages'?), at character 1")
  assert.equal(checkCondition('nosuch(1)'), "found no matching overload for 'nosuch(int)', at character 1")
  assert.equal(checkCondition('1 + "a"'), 'int + string is not possible, at character 1')
  assert.match(checkCondition('') ?? '', /Unexpected token/)
})

test('the stages that an expression looks at are known before it runs', () => {
  assert.deepEqual(stagesNamedIn('stages.a.output.n > 1 && stages["b c"].state == "failed" || has(stages.a.x)'), [
    'a',
    'b c',
  ])
  assert.deepEqual(stagesNamedIn('input.list.exists(i, i == stages.a.output || stages.d.output[stages.e.output])'), [
    'a',
    'd',
    'e',
  ])
  assert.deepEqual(stagesNamedIn('input.stages.a'), [])
})

test('an expression that would look at whichever stage there is, is refused', () => {
  for (const text of ['stages[input.name].state', 'stages.exists(s, true)', 'size(stages) > 1', 'stages == input']) {
    assert.match(checkCondition(text) ?? '', /stages\["name"\]/, text)
  }
})

test('an expression has at most 2,000 characters', () => {
  const longest = `"${'a'.repeat(1998)}"`
  assert.equal(checkCondition(longest), undefined)
  assert.equal(checkCondition(`${longest} `), 'it has more than 2000 characters')
  assert.throws(() => evaluate(`${longest} `, scope), { message: 'it has more than 2000 characters' })
})

test('an expression that would run for hours is stopped, and the next one runs', () => {
  const list = Array.from({ length: 3000 }, () => 1)
  const object = Object.fromEntries(list.map((_, index) => [`key ${index}`, index]))
  const long: Scope = { input: { list, object, long: 'a'.repeat(100_000), half: `${'a'.repeat(50_000)}b` }, stages: {} }
  const loops = 'input.list.all(a, input.list.all(b, input.list.all(c, c == 1)))'
  const endless = [
    loops,
    `${loops} || true`,
    `[${loops}, true].exists(x, x)`,
    'input.list.all(a, input.object.all(key, true))',
    'input.list.all(a, input.list == input.list)',
    'input.list.all(a, a in input.list && false || input.list + [a] != [])',
    'input.list.all(a, [1, 2, 3].all(b, timestamp("2026-01-02T03:04:05Z").getHours("Asia/Tokyo") == 12))',
    'input.list.exists(a, input.list.exists(b, b.nope))',
    'input.list.all(a, input.list.exists(b, "x".matches("(")))',
    'input.long.split("").join(input.long)',
    'input.list.map(a, input.long.split(""))',
    'input.long.contains(input.half)',
    'input.long.matches("(a{1,100}){1,10}b")',
    `[[1]]${'.map(a, [a, a])'.repeat(60)}`,
    `[[1]]${'.map(a, a + a)'.repeat(60)}`,
    `["a"]${'.map(a, a + a)'.repeat(60)}`,
  ]
  for (const text of endless)
    assert.throws(() => evaluate(text, long), { message: 'it takes more than 1,000,000 steps' }, text)
  assert.equal(evaluate('size(input.list)', long), 3000)
})

test('patterns are matched in linear time, and those that cannot be are refused', () => {
  const long = { input: { text: `${'a'.repeat(50_000)}b` }, stages: {} }
  assert.equal(evaluate('input.text.matches("^(a+)+$")', long), false)
  assert.equal(evaluate('input.text.matches("^a+b$") && !input.text.matches("c")', long), true)
  assert.throws(() => evaluate('input.text.matches("(?=a)")', long), {
    message: /the pattern "\(\?=a\)" is not supported by RE2/,
  })
  assert.throws(() => evaluate('input.text.matches(input.text)', long), {
    message: 'a pattern can have at most 1000 characters',
  })
  assert.throws(() => evaluate('input.text.matches("((a{100}){100}){100}")', long), {
    message: 'a pattern has too many repetitions',
  })
  assert.throws(() => evaluate('duration(input.text)', long), { message: 'a duration has at most 100 characters' })
})

test('an expression is not failed for time in which the process was paused', () => {
  const input = {
    get slow() {
      // Sleeps without using the processor, as a process does that is stopped.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1100)
      return 1
    },
  }
  assert.equal(evaluate('input.slow', { input, stages: {} }), 1)
})

test('the same expression takes the same number of steps each time', () => {
  const text = 'input.list.map(n, n * 2).filter(n, n > 2 && input.name.matches("[a-z]+")).size() + size(input.name)'
  const spent = () => {
    const meter = new Meter(1000)
    evaluate(text, scope, meter)
    return 1000 - meter.left
  }
  const first = spent()
  assert.ok(first > 20)
  assert.equal(spent(), first)
})
