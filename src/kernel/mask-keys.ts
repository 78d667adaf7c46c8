/** Hides keys and passwords in lines that people read or that logs keep. Every pattern takes time linear in the text. */

const hidden = '***'

const patterns: readonly (readonly [RegExp, string])[] = [
  // A key of Pawl's.
  [/pawl_[A-Za-z0-9_-]{16,}/g, `pawl_${hidden}`],
  // The password in postgres://user:password@host, and in ?password=.
  [/(:\/\/[^\s:@/"'\\]*:)[^\s/"'\\]+@/g, `$1${hidden}@`],
  [/([?&]password=)[^&\s"'\\]+/gi, `$1${hidden}`],
  // A header, as itself or in an object that was written out.
  [/(authorization["']?[:=] ?["']?(?:(?:bearer|basic) )?)[A-Za-z0-9._~+/=-]{8,}/gi, `$1${hidden}`],
  [/(\bbearer )[A-Za-z0-9._~+/=-]{16,}/gi, `$1${hidden}`],
]

export function maskKeys(text: string): string {
  return patterns.reduce((masked, [pattern, replacement]) => masked.replace(pattern, replacement), text)
}
