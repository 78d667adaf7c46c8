/**
 * Leaves out of a failing story all that it can do without: what follows the fault, then halves, then smaller and
 * smaller pieces. Stories are slow to tell, so it ends when the time is up, with the shortest that was found.
 * `failsAt` says how many items of a story were told when it failed; undefined: it went well.
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
      const told = rest.length === 0 ? undefined : await failsAt(rest)
      if (told === undefined) start += size
      else shortest = rest.slice(0, told)
    }
  }
  return shortest
}
