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
