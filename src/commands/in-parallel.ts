/** Works a list, so many at once. The first failure ends it: nothing more is begun, and what has begun is waited for. */
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
