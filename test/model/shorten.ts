/**
 * Shortens a failing story: removes everything after the fault, then halves, then ever smaller pieces. Running a story is
 * slow, so the search ends when the time is up. Returns the shortest failing story that was found.
 * `failsAt` returns the number of items that had run when the story failed; undefined: it did not fail.
 */
export async function shorten<Item>(
  story: readonly Item[],
  failsAt: (story: readonly Item[]) => Promise<number | undefined>,
  seconds: number,
): Promise<readonly Item[]> {
  const deadline = performance.now() + seconds * 1000
  let shortest = story.slice(0, await failsAt(story))
  for (let size = Math.ceil(shortest.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let start = 0; start < shortest.length; ) {
      if (performance.now() > deadline) return shortest
      const rest = [...shortest.slice(0, start), ...shortest.slice(start + size)]
      const failedAt = rest.length === 0 ? undefined : await failsAt(rest)
      if (failedAt === undefined) start += size
      else shortest = rest.slice(0, failedAt)
    }
  }
  return shortest
}
