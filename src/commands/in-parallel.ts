/**
 * Runs `work` for all items with limited concurrency. After the first failure it starts no more, and waits for those
 * that are running.
 */
export async function inParallel<T>(
  items: AsyncIterable<T> | Iterable<T>,
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const under = new Set<Promise<void>>()
  let failure: { error: unknown } | undefined
  for await (const item of items) {
    if (failure !== undefined) break
    const doing: Promise<void> = work(item)
      .catch(error => {
        failure ??= { error }
      })
      .finally(() => under.delete(doing))
    under.add(doing)
    if (under.size >= atOnce) await Promise.race(under)
  }
  await Promise.all(under)
  if (failure !== undefined) throw failure.error
}
