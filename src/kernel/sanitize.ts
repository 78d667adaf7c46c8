/** Makes untrusted text safe to show in a terminal, a log or a page. */

/** Control characters, bidirectional and invisible formatting characters, and lone surrogates. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a terminal
const harmful = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|\p{Cs}/gu

/**
 * Replaces characters that could move the cursor or forge a line with visible escapes. Names, payloads and errors are
 * untrusted.
 */
export function sanitize(text: string): string {
  return text.replace(harmful, escapeOf)
}

const named: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

function escapeOf(character: string): string {
  const code = character.codePointAt(0)!
  return named[character] ?? (code < 0x100 ? `\\x${hex(code, 2)}` : `\\u${hex(code, 4)}`)
}

const hex = (code: number, digits: number) => code.toString(16).padStart(digits, '0')

/** Serializes a value with JSON escapes for the same characters. The JSON keeps its meaning. */
export function sanitizeJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(value ?? null, null, indent)
  return text.replace(harmful, character => (character === '\n' ? character : `\\u${hex(character.charCodeAt(0), 4)}`))
}

/** Like `sanitize` for multi-line text: keeps line breaks and tabs. */
export function sanitizeLines(text: string): string {
  return text.replace(harmful, character =>
    character === '\n' || character === '\t' ? character : escapeOf(character),
  )
}

/** Hides keys and passwords in text that people read or logs keep. Every pattern runs in linear time. */

const hidden = '***'

const patterns: readonly (readonly [RegExp, string])[] = [
  // An API key of Pawl.
  [/pawl_[A-Za-z0-9_-]{16,}/g, `pawl_${hidden}`],
  // The password in postgres://user:password@host, and in ?password=.
  [/(:\/\/[^\s:@/"'\\]*:)[^\s/"'\\]+@/g, `$1${hidden}@`],
  [/([?&]password=)[^&\s"'\\]+/gi, `$1${hidden}`],
  // An authorization header, alone or inside a serialized object.
  [/(authorization["']?[:=] ?["']?(?:(?:bearer|basic) )?)[A-Za-z0-9._~+/=-]{8,}/gi, `$1${hidden}`],
  [/(\bbearer )[A-Za-z0-9._~+/=-]{16,}/gi, `$1${hidden}`],
]

export function maskKeys(text: string): string {
  return patterns.reduce((masked, [pattern, replacement]) => masked.replace(pattern, replacement), text)
}
