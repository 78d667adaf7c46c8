/** Returns the known word closest to a misspelt one, if any is close enough. */
export function closestWord(word: string, known: readonly string[]): string | undefined {
  const mostSteps = (candidate: string) => Math.max(2, candidate.length / 3)
  const near = known
    // The distance is at least the difference in length, so a word of a megabyte is compared with none.
    .filter(candidate => Math.abs(candidate.length - word.length) <= mostSteps(candidate))
    .map(candidate => ({ candidate, steps: distance(word.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ candidate, steps }) => steps <= mostSteps(candidate))
  return near.sort((one, other) => one.steps - other.steps)[0]?.candidate
}

/** Truncates a word from a request before it is quoted in an answer. */
export function truncate(word: string): string {
  return word.length <= 100 ? word : `${word.slice(0, 100).toWellFormed()}…`
}

/** Levenshtein distance: insertions, deletions and replacements. */
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
