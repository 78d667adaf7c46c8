/**
 * Durations in buckets that grow by a factor of √2: 57 buckets span a millisecond to three days, with an error of at
 * most one fifth. Histograms of different minutes, types and processes can be added.
 */
export const bucketCount = 58

/** The upper bound of a bucket. The last bucket is unbounded. */
export function upperSeconds(bucket: number): number {
  return bucket >= bucketCount - 1 ? Number.POSITIVE_INFINITY : 2 ** (bucket / 2) / 1000
}

export function bucketOf(seconds: number): number {
  if (!(seconds > 0.001)) return 0
  return Math.min(bucketCount - 1, Math.ceil(2 * Math.log2(seconds * 1000)))
}

export type Counts = ReadonlyMap<number, number>

/** The duration below which a share of all samples lies, or null without samples. Uses the middle of the bucket. */
export function quantile(counts: Counts, share: number): number | null {
  const total = [...counts.values()].reduce((sum, n) => sum + n, 0)
  if (total === 0) return null
  let left = share * total
  const filled = [...counts].sort(([one], [other]) => one - other)
  for (const [bucket, n] of filled) {
    left -= n
    if (left <= 0) return middle(bucket)
  }
  return middle(filled.at(-1)![0])
}

function middle(bucket: number): number {
  if (bucket === 0) return upperSeconds(0)
  if (bucket === bucketCount - 1) return upperSeconds(bucket - 1)
  return Math.sqrt(upperSeconds(bucket - 1) * upperSeconds(bucket))
}

/** How long per-minute counts are kept. */
export const statSeconds = 3 * 86_400

/**
 * Maximum number of queues and types that metrics name. Anybody who may queue a task can invent queues and types, and
 * each would be a series of its own in every scrape, and in Prometheus for months. The others are summed under one label,
 * which keeps totals correct.
 */
export const maxLabels = 100
/** The label for everything that is not named individually. */
export const otherLabel = '_other'
