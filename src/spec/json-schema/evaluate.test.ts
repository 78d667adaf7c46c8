import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Schema, Validator } from '@cfworker/json-schema'
import fc from 'fast-check'
import { seed } from '../../../test/harness/dice.ts'
import { Meter } from '../meter.ts'
import { faultOf, faultsIn } from './evaluate.ts'

const isValid = (schema: object, value: unknown) => faultsIn({ ...schema }, value, new Meter(1e9)).length === 0

/** Small names and values, so that schemas and payloads often meet. */
const name = fc.constantFrom('a', 'b', 'c')
const scalar = fc.constantFrom(null, true, false, 0, 1, 2, 3, -1, 0.5, '', 'a', 'ab', 'abc', '😀')
const payload = fc.letrec<{ value: unknown }>(tie => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(name, tie('value'), { maxKeys: 3, noNullPrototype: true }),
  ),
})).value

const schemas = fc.letrec<{ schema: unknown; part: unknown }>(tie => {
  const schema = tie('schema')
  const list = fc.array(schema, { minLength: 1, maxLength: 3 })
  const map = fc.dictionary(name, schema, { maxKeys: 2, noNullPrototype: true })
  const count = fc.nat(3)
  const number = fc.constantFrom(-1, 0, 1, 2, 0.5)
  const types = fc.constantFrom('null', 'boolean', 'object', 'array', 'number', 'string', 'integer')
  const keywords = {
    type: fc.oneof(types, fc.uniqueArray(types, { minLength: 1, maxLength: 3 })),
    const: payload,
    enum: fc.uniqueArray(payload, { minLength: 1, maxLength: 3, selector: value => JSON.stringify(value) }),
    minimum: number,
    maximum: number,
    exclusiveMinimum: number,
    exclusiveMaximum: number,
    multipleOf: fc.constantFrom(1, 2, 0.5),
    minLength: count,
    maxLength: count,
    pattern: fc.constantFrom('a', '^a', 'b$', '^[ab]+$'),
    minItems: count,
    maxItems: count,
    uniqueItems: fc.boolean(),
    prefixItems: list,
    items: schema,
    contains: schema,
    minContains: count,
    maxContains: count,
    unevaluatedItems: schema,
    required: fc.uniqueArray(name, { maxLength: 2 }),
    minProperties: count,
    maxProperties: count,
    properties: map,
    patternProperties: fc.dictionary(fc.constantFrom('^a', 'b', '[ac]'), schema, { maxKeys: 2, noNullPrototype: true }),
    additionalProperties: schema,
    unevaluatedProperties: schema,
    propertyNames: schema,
    dependentRequired: fc.dictionary(name, fc.uniqueArray(name, { maxLength: 2 }), {
      maxKeys: 2,
      noNullPrototype: true,
    }),
    dependentSchemas: map,
    allOf: list,
    anyOf: list,
    oneOf: list,
    not: schema,
    if: schema,
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: schema,
    else: schema,
    $ref: fc.constantFrom('#/$defs/a', '#/$defs/b'),
  }
  const pairs = Object.entries(keywords).map(([keyword, value]) =>
    fc.tuple(fc.constant(keyword), value as fc.Arbitrary<unknown>),
  )
  const object = fc.array(fc.oneof(...pairs), { maxLength: 4 }).map(Object.fromEntries)
  return {
    part: object,
    schema: fc.oneof({ maxDepth: 4 }, { weight: 1, arbitrary: fc.boolean() }, { weight: 5, arbitrary: object }),
  }
})
const root = fc
  .tuple(schemas.part, schemas.schema, schemas.schema)
  .map(([part, a, b]) => ({ ...(part as object), $defs: { a, b } }))

test('a payload is valid when an independent validator of JSON Schema says so', () => {
  const count = { valid: 0, invalid: 0 }
  fc.assert(
    fc.property(root, fc.array(payload, { minLength: 5, maxLength: 20 }), (schema, payloads) => {
      // References that lead back to themselves in place are refused, and the other validator would not end.
      fc.pre(faultOf(schema) === undefined)
      const other = new Validator(structuredClone(schema) as Schema, '2020-12', false)
      for (const value of payloads) {
        const { valid } = other.validate(value)
        count[valid ? 'valid' : 'invalid'] += 1
        assert.equal(isValid(schema, value), valid, `${JSON.stringify(schema)} for ${JSON.stringify(value)}`)
      }
    }),
    { seed, numRuns: 1000 },
  )
  assert.ok(count.valid > 1000 && count.invalid > 1000, JSON.stringify(count))
})

const cases: [schema: object, valid: unknown[], invalid: unknown[]][] = [
  [
    { contains: { multipleOf: 2 }, unevaluatedItems: { multipleOf: 3 } },
    [
      [2, 3, 4],
      [2, 4],
    ],
    [
      [2, 3, 5],
      [3, 9],
    ],
  ],
  [{ contains: { type: 'string' }, unevaluatedItems: false }, [['a']], [['a', 1]]],
  [{ contains: {}, minContains: 0 }, [[]], []],
  [{ contains: { const: 1 }, minContains: 2, maxContains: 2 }, [[1, 1]], [[1], [1, 1, 1], []]],
  [
    { uniqueItems: true },
    [
      [1, true],
      [
        { a: 1, b: 2 },
        { a: 2, b: 1 },
      ],
      [[1], [2]],
    ],
    [
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      [0, -0],
    ],
  ],
  [{ multipleOf: 0.0001 }, [0.0075, 1e20], [0.00751]],
  [{ multipleOf: 1e-300 }, [1e300, 0], []],
  [{ minLength: 2 }, ['ab', '😀😀'], ['😀']],
  [
    { properties: { __proto__: { type: 'number' }, toString: { type: 'number' } } },
    [{}, { toString: 1 }],
    [{ toString: 'x' }],
  ],
  [{ required: ['toString'] }, [1], [{}]],
  [{ const: { a: [0] } }, [{ a: [-0] }], [{ a: [1] }, { a: [0], b: 1 }]],
  [{ items: [{ type: 'string' }], additionalItems: { type: 'number' } }, [['a', 1], []], [[1], ['a', 'b']]],
  [{ dependencies: { a: ['b'], c: { required: ['a'] } } }, [{ a: 1, b: 1 }, {}], [{ a: 1 }, { c: 1 }]],
  [
    {
      properties: { a: true },
      anyOf: [{ properties: { b: true }, required: ['b'] }, true],
      unevaluatedProperties: false,
    },
    [{ a: 1 }, { a: 1, b: 1 }],
    [{ c: 1 }, { b: 1, c: 1 }],
  ],
  [{ $defs: { 'a/b~c%': { type: 'string' } }, $ref: '#/$defs/a~1b~0c%25' }, ['x'], [1]],
  [
    { type: 'object', properties: { next: { $ref: '#' } }, required: ['n'] },
    [{ n: 1, next: { n: 2 } }],
    [{ n: 1, next: {} }],
  ],
]

test('the cases that validators often get wrong are judged as JSON Schema defines them', () => {
  for (const [schema, valid, invalid] of cases) {
    assert.equal(faultOf({ ...schema }), undefined, JSON.stringify(schema))
    for (const value of valid) assert.equal(isValid(schema, value), true, JSON.stringify([schema, value]))
    for (const value of invalid) assert.equal(isValid(schema, value), false, JSON.stringify([schema, value]))
  }
})

const formats: Record<string, [valid: string[], invalid: string[]]> = {
  date: [
    ['2024-02-29', '0001-01-01'],
    ['2023-02-29', '2024-13-01', '24-01-01', '2024-1-1'],
  ],
  time: [
    ['12:00:00Z', '23:59:60Z', '01:29:60+01:30', '12:00:00.5-08:00'],
    ['12:00:00', '24:00:00Z', '12:00:60Z'],
  ],
  'date-time': [
    ['2024-02-29T12:00:00Z', '2024-01-01t00:00:00.123+02:00'],
    ['2024-02-30T12:00:00Z', '2024-01-01', '2024-01-01T12'],
  ],
  duration: [
    ['P1D', 'PT5M', 'P4Y3M2DT1H', 'P2W'],
    ['P', 'PT', '1D', 'P1Y2W', 'P1D2H'],
  ],
  email: [
    ['a@b.c', 'a.b+c@example.org', '"a b"@example.org', 'a@[127.0.0.1]'],
    ['a', '@b', 'a@', '.a@b.c', 'a..b@c.d', 'a b@c.d'],
  ],
  hostname: [
    ['a', 'www.example.org', 'xn--4gbwdl.xn--wgbh1c'],
    ['-a', 'a-', 'a..b', 'a_b', `${'a'.repeat(64)}.b`],
  ],
  ipv4: [['127.0.0.1'], ['256.0.0.1', '1.2.3', '01.2.3.4']],
  ipv6: [
    ['::1', 'fe80::1:2', '::ffff:1.2.3.4', '1:2:3:4:5:6:7:8', '::', '1::', '1:2:3:4:5:6:1.2.3.4'],
    [
      '1::2::3',
      'fe80::1%eth0',
      '12345::',
      '1:2:3:4:5:6:7',
      '1:2:3:4:5:6:7:8:9',
      '1:2:3:4::5:6:7:8',
      '::1.2.3',
      '1.2.3.4::',
      ':1',
      '',
    ],
  ],
  uri: [
    ['https://a.b/c?d=e#f', 'urn:isbn:1', 'mailto:a@b.c', 'http://[::1]:80/'],
    ['a/b', '//a.b', 'http://a b', 'a:\\b', 'x:%zz'],
  ],
  'uri-reference': [
    ['/a/b', 'https://a.b', '#f', ''],
    ['\\\\a', 'a b', '%zz', '#a\\b'],
  ],
  'uri-template': [['/a/{b}{?c,d*}'], ['/a/{b', '{}']],
  url: [['https://a.b/c'], ['a.b', 'file://x']],
  uuid: [
    ['2eb8aa08-aa98-11ea-b4aa-73b441d16380'],
    ['2eb8aa08aa9811eab4aa73b441d16380', '2eb8aa08-aa98-11ea-b4aa-73b441d1638'],
  ],
  regex: [
    ['^a+$', '(?=a)'],
    ['(', '['],
  ],
  'json-pointer': [
    ['', '/a/~0~1'],
    ['a', '/a/~2'],
  ],
  'json-pointer-uri-fragment': [
    ['#', '#/a%20b'],
    ['/a', '#a'],
  ],
  'relative-json-pointer': [
    ['0', '1/a', '2#'],
    ['a', '01/a', '-1'],
  ],
  'anything-else': [['x'], []],
}

test('texts are checked for the formats that were checked before', () => {
  for (const [format, [valid, invalid]] of Object.entries(formats)) {
    for (const text of valid) assert.equal(isValid({ format }, text), true, `${format}: ${text}`)
    for (const text of invalid) assert.equal(isValid({ format }, text), false, `${format}: ${text}`)
  }
})
