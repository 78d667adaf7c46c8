/**
 * The names that figures are told by. Anybody who may queue a task may make up queues and types, and each would be a
 * series of its own in every scrape and in Prometheus for months. So a limited number is told by name, and the rest
 * together as one, so that sums stay right.
 */

export const mostNamed = 100
/** The label of all that are not told by name. */
export const otherName = '_other'

export interface Weighed {
  readonly name: string
  /** How much there is of it. One with nothing may lose its place to one with something. */
  readonly weight: number
}

/**
 * Chooses which names get a series of their own. A name keeps its series, so that none comes and goes with the load. It
 * loses it only if it is gone, or if it is empty and a name that is not needs the place.
 */
export function choosingNames(most = mostNamed): (all: readonly Weighed[]) => ReadonlySet<string> {
  let named = new Set<string>()
  return all => {
    const heaviest = all.toSorted((one, other) => other.weight - one.weight || (one.name < other.name ? -1 : 1))
    const isBusy = ({ weight }: Weighed) => weight > 0
    const hadPlace = ({ name }: Weighed) => named.has(name)
    const inOrder = [
      ...heaviest.filter(one => isBusy(one) && hadPlace(one)),
      ...heaviest.filter(one => isBusy(one) && !hadPlace(one)),
      ...heaviest.filter(one => !isBusy(one) && hadPlace(one)),
      ...heaviest.filter(one => !isBusy(one) && !hadPlace(one)),
    ]
    named = new Set(inOrder.slice(0, most).map(({ name }) => name))
    return named
  }
}
