/** Text as a terminal shows it: nothing in it acts on the terminal, and its width is known. */

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
