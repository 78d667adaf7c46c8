/** JSON that PostgreSQL can store. */

const maxDepth = 100

/** Serializes a value, or says why it cannot be serialized. */
export function writeJson(
  value: unknown,
  replace?: (name: string, value: unknown) => unknown,
): { text: string } | { error: string } {
  try {
    const text = JSON.stringify(value ?? null, replace)
    return text === undefined ? { error: `a ${typeof value} is not JSON` } : { text }
  } catch (error) {
    return { error: (error as Error).message.split('\n')[0]! }
  }
}

/** Returns why PostgreSQL cannot store this JSON text, or undefined if it can. */
export function whyNotStorable(text: string): string | undefined {
  if (text.includes('\\u') && /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/i.test(text)) {
    return 'it contains a NUL or a lone surrogate'
  }
  if (text.length > 2 * maxDepth && depthOf(text) > maxDepth) return `it is more than ${maxDepth} levels deep`
  return undefined
}

/** A replacer for `JSON.stringify`. Errors and bigints have no JSON form, but often appear in logs. */
export function loggable(_: string, value: unknown): unknown {
  if (value instanceof Error) return { ...value, name: value.name, message: value.message, stack: value.stack }
  return typeof value === 'bigint' ? String(value) : value
}

/** Truncates text and replaces what the store cannot hold: NUL characters and lone surrogates. */
export function storableText(text: string, longest: number): string {
  return text.slice(0, longest).toWellFormed().replaceAll('\0', '\uFFFD')
}

function depthOf(text: string): number {
  let depth = 0
  let deepest = 0
  for (const [mark] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/g)) {
    if (mark === '[' || mark === '{') deepest = Math.max(deepest, ++depth)
    else if (mark === ']' || mark === '}') depth -= 1
  }
  return deepest
}
