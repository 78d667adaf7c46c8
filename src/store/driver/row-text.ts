/**
 * Rewrites statements so that every client of PostgreSQL sends and receives the same: each value and each row is text.
 * Libraries and their settings treat other types (dates, bigint, JSON, names in camel case) differently.
 */

/**
 * Makes every parameter text, and casts it to its type. Libraries convert values by the type of their parameter, and
 * leave text as it is. The cast is in a subquery, which runs once: elsewhere, the server would read the text of a list
 * again for each row that it compares. The outer cast keeps `any ($1)` from being read as `any (subquery)`.
 */
export function withTextValues(text: string, types: readonly string[]): string {
  return text.replace(/\$(\d+)/g, (parameter, number: number) => {
    const type = types[number - 1]!
    return `(select ${parameter}::text::${type})::${type}`
  })
}

/** Makes the statement return each row as one text, in the format that `parseRow` reads. */
export function withTextRows(text: string): string {
  const { at, hasList } = mainStatement(text)
  const before = text.slice(0, at)
  return `${before}${hasList ? ', ' : 'with '}pawl_row as (${text.slice(at)}\n) select pawl_row::text from pawl_row`
}

/** Strings, quoted names, comments, parentheses and words. Nothing else decides where a statement begins. */
const token = /'(?:[^']|'')*'|"[^"]*"|\$\$.*?\$\$|--[^\n]*|[()]|\b\w+\b/gs
const verbs = new Set(['select', 'insert', 'update', 'delete', 'values'])

/** Where the statement itself begins: after its WITH list, if it has one. */
function mainStatement(text: string): { at: number; hasList: boolean } {
  let depth = 0
  let hasList = false
  for (const { 0: word, index } of text.matchAll(token)) {
    if (word === '(') depth++
    else if (word === ')') depth--
    else if (depth > 0) continue
    else if (verbs.has(word)) return { at: index, hasList }
    else if (word === 'with') hasList = true
  }
  throw new Error(`No statement found in: ${text}`)
}

/** The columns of a row in the text format of PostgreSQL, such as `(1,"a, b",)`. */
export function parseRow(text: string): (string | null)[] {
  const columns: (string | null)[] = []
  if (text === '()') return columns
  for (let at = 1; at < text.length; at++) {
    if (text[at] === '"') {
      const end = endOfQuoted(text, at + 1)
      columns.push(text.slice(at + 1, end).replace(/""|\\\\/g, pair => pair[0]!))
      at = end + 1
    } else {
      const comma = text.indexOf(',', at)
      const end = comma === -1 ? text.length - 1 : comma
      columns.push(end === at ? null : text.slice(at, end))
      at = end
    }
  }
  return columns
}

/** Inside quotes, a quote is doubled. */
function endOfQuoted(text: string, from: number): number {
  for (let at = from; ; at += 2) {
    at = text.indexOf('"', at)
    if (text[at + 1] !== '"') return at
  }
}
