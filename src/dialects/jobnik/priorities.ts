/** Jobnik's five priorities as numbers, far enough apart that an aging lane never passes into the next band. */
const bands = [
  { word: 'VERY_HIGH', number: 2000, from: 1500 },
  { word: 'HIGH', number: 1000, from: 500 },
  { word: 'MEDIUM', number: 0, from: -499 },
  { word: 'LOW', number: -1000, from: -1499 },
  { word: 'VERY_LOW', number: -2000, from: -1_000_000 },
] as const

export type Priority = (typeof bands)[number]['word']

export const priorityWords: readonly Priority[] = bands.map(({ word }) => word)

/** Where each band begins, the lowest first. */
export const bandStarts: readonly number[] = bands.map(({ from }) => from).toReversed()

const bandOf = (priority: Priority) => bands.findIndex(({ word }) => word === priority)

export const numberFor = (priority: Priority) => bands[bandOf(priority)]!.number

/** The nearest word for any number, because jobs may come from other clients. */
export const priorityFor = (number: number): Priority => bands.find(({ from }) => number >= from)!.word

/** The priorities that a word stands for. */
export function rangeOf(priority: Priority): { readonly priorityFrom: number; readonly priorityTo: number } {
  const at = bandOf(priority)
  return { priorityFrom: bands[at]!.from, priorityTo: at === 0 ? 1_000_000 : bands[at - 1]!.from - 1 }
}
