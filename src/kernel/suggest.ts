/** The known word nearest to a misspelt one, if any is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const near = known
    .map(candidate => ({ candidate, steps: distance(word.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ candidate, steps }) => steps <= Math.max(2, candidate.length / 3))
  return near.sort((one, other) => one.steps - other.steps)[0]?.candidate
}

/** Levenshtein's: insertions, deletions and replacements. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let i = 1; i <= one.length; i++) {
    const next = [i]
    for (let j = 1; j <= other.length; j++) {
      const replaced = row[j - 1]! + (one[i - 1] === other[j - 1] ? 0 : 1)
      next.push(Math.min(next[j - 1]! + 1, row[j]! + 1, replaced))
    }
    row = next
  }
  return row[other.length]!
}
