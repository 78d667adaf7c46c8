/** The width of text on a terminal, and cutting it to a width. */

const graphemes = new Intl.Segmenter('en')
/** East Asian characters and emoji take two columns. */
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

/** The number of columns that a text takes. */
export function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  let width = 0
  for (const { segment } of graphemes.segment(text)) width += cellsOf(segment)
  return width
}

/** Cuts a text to a width. An … replaces the removed end. */
export function cut(text: string, width: number): string {
  return widthOf(text) <= width ? text : `${fittingSegments([...segmentsOf(text)], width - 1).join('')}…`
}

/** Cuts a text to a width. An … replaces the removed beginning: the end of an id distinguishes it better. */
export function cutStart(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  return `…${fittingSegments([...segmentsOf(text)].reverse(), width - 1)
    .reverse()
    .join('')}`
}

function* segmentsOf(text: string): Generator<string> {
  for (const { segment } of graphemes.segment(text)) yield segment
}

function fittingSegments(segments: readonly string[], width: number): string[] {
  const fitting: string[] = []
  for (let left = width; fitting.length < segments.length; ) {
    const next = segments[fitting.length]!
    left -= cellsOf(next)
    if (left < 0) break
    fitting.push(next)
  }
  return fitting
}
