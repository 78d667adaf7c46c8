/** Text as a terminal shows it: nothing in it acts on the terminal, and its width is known. */

/** Control characters, what turns the direction of text, what has no shape, and halves of characters. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a terminal
const harmful = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|\p{Cs}/gu

/** Names, payloads and errors come from others: what could move the cursor or forge a line is shown as an escape. */
export function harmless(text: string): string {
  return text.replace(harmful, escapeOf)
}

const named: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

function escapeOf(character: string): string {
  const code = character.codePointAt(0)!
  return named[character] ?? (code < 0x100 ? `\\x${hex(code, 2)}` : `\\u${hex(code, 4)}`)
}

const hex = (code: number, digits: number) => code.toString(16).padStart(digits, '0')

/** JSON that is harmless too: it says the same, for JSON has escapes of its own. */
export function harmlessJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(value ?? null, null, indent)
  return text.replace(harmful, character => (character === '\n' ? character : `\\u${hex(character.charCodeAt(0), 4)}`))
}

const graphemes = new Intl.Segmenter('en')
/** East Asian characters and emoji stand in two columns. */
const wide = new RegExp(
  [
    '^[\\u1100-\\u115f\\u2e80-\\u303e\\u3041-\\u4dbf\\u4e00-\\ua4cf\\uac00-\\ud7a3\\uf900-\\ufaff]',
    '^[\\ufe30-\\ufe6f\\uff00-\\uff60\\uffe0-\\uffe6\\u{1f300}-\\u{1faff}\\u{20000}-\\u{3fffd}]',
    '^\\p{Emoji_Presentation}',
  ].join('|'),
  'u',
)

function cellsOf(grapheme: string): number {
  return wide.test(grapheme) ? 2 : 1
}

/** How many columns a text takes. */
export function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  let width = 0
  for (const { segment } of graphemes.segment(text)) width += cellsOf(segment)
  return width
}

/** At most so many columns; what is cut off at the end is shown as …. */
export function cut(text: string, width: number): string {
  return widthOf(text) <= width ? text : `${fitting([...segmentsOf(text)], width - 1).join('')}…`
}

/** The same, cut off at the beginning: of an id the end tells more. */
export function cutStart(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  return `…${fitting([...segmentsOf(text)].reverse(), width - 1)
    .reverse()
    .join('')}`
}

function* segmentsOf(text: string): Generator<string> {
  for (const { segment } of graphemes.segment(text)) yield segment
}

function fitting(segments: readonly string[], width: number): string[] {
  const taken: string[] = []
  for (let left = width; taken.length < segments.length; ) {
    const next = segments[taken.length]!
    left -= cellsOf(next)
    if (left < 0) break
    taken.push(next)
  }
  return taken
}
