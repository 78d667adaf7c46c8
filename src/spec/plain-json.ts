/** What CEL made of a value, as JSON has it: no BigInt, no timestamps. */
export function plainJson(value: unknown): unknown {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number' || typeof value === 'bigint') return plainNumber(value)
  if (Array.isArray(value)) return value.map(plainJson)
  if (value instanceof Date) return value.toISOString()
  if (isPlain(value)) return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plainJson(inner)]))
  // An unsigned integer of CEL.
  if (typeof value === 'object' && typeof value.valueOf() === 'bigint') return plainJson(value.valueOf())
  throw new Error('it gives something that is not JSON')
}

function plainNumber(value: number | bigint): number {
  const made = Number(value)
  if (typeof value === 'bigint' && !Number.isSafeInteger(made)) throw new Error(`the number ${value} is too large`)
  if (!Number.isFinite(made)) throw new Error('it gives a number that is not finite')
  return made
}

function isPlain(value: unknown): value is Record<string, unknown> {
  const kind = typeof value === 'object' && value !== null ? Object.getPrototypeOf(value) : undefined
  return kind === Object.prototype || kind === null
}
