/**
 * Takes and processes items until there are none left. The concurrent loops start only once the first item is found, so
 * the frequent case of no items costs a single query.
 */
export async function processAll<T>(
  concurrency: number,
  take: () => Promise<T | undefined>,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const processFrom = async (first: T | undefined) => {
    for (let item = first; item !== undefined; item = await take()) await work(item)
  }
  const first = await take()
  if (first === undefined) return
  const others = Array.from({ length: concurrency - 1 }, async () => processFrom(await take()))
  await Promise.all([processFrom(first), ...others])
}
