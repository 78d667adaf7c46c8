/** Text that comes from others, made so that it acts on nobody who sees it. */

/** Control characters, what turns the direction of text, what has no shape, and halves of characters. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a terminal
const harmful = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|\p{Cs}/gu

/** Names, payloads and errors come from others: what could move the cursor or forge a line is shown as an escape. */
export function sanitize(text: string): string {
  return text.replace(harmful, escapeOf)
}

const named: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

function escapeOf(character: string): string {
  const code = character.codePointAt(0)!
  return named[character] ?? (code < 0x100 ? `\\x${hex(code, 2)}` : `\\u${hex(code, 4)}`)
}

const hex = (code: number, digits: number) => code.toString(16).padStart(digits, '0')

/** JSON that is harmless too: it says the same, for JSON has escapes of its own. */
export function sanitizeJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(value ?? null, null, indent)
  return text.replace(harmful, character => (character === '\n' ? character : `\\u${hex(character.charCodeAt(0), 4)}`))
}

/** Of several lines, for where they may stand: line breaks and tabs stay. */
export function sanitizeLines(text: string): string {
  return text.replace(harmful, character =>
    character === '\n' || character === '\t' ? character : escapeOf(character),
  )
}
