/**
 * Takes one item after the other and works on it, until there is none left. The others that may work beside it begin when
 * the first item is found, so that looking in vain, which happens far more often, costs one look.
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
