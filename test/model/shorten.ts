/**
 * Leaves out of a failing story all that it can do without: halves first, then smaller and smaller pieces. Stories are
 * slow to tell, so it ends when the time is up, with the shortest that was found.
 */
export async function shorten<Item>(
  story: readonly Item[],
  fails: (story: readonly Item[]) => Promise<boolean>,
  seconds: number,
): Promise<readonly Item[]> {
  const deadline = performance.now() + seconds * 1000
  let shortest = story
  for (let size = Math.ceil(story.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let end = shortest.length; end > 0; end -= size) {
      if (performance.now() > deadline) return shortest
      const start = Math.max(0, end - size)
      const rest = [...shortest.slice(0, start), ...shortest.slice(end)]
      if (rest.length > 0 && (await fails(rest))) shortest = rest
    }
  }
  return shortest
}
