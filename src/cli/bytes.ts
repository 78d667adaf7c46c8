const units = ['kB', 'MB', 'GB', 'TB', 'PB'] as const

/** A size as people read it: `712 B`, `1.5 kB`, `340 MB`. */
export function bytes(size: number | null): string {
  if (size === null) return ''
  if (size < 1000) return `${size} B`
  const power = Math.min(units.length, Math.floor(Math.log10(size) / 3))
  const shown = size / 1000 ** power
  return `${shown < 10 ? shown.toFixed(1) : Math.round(shown)} ${units[power - 1]}`
}
