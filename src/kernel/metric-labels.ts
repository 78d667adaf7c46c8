/**
 * The names that figures are told by. Anybody who may queue a task may make up queues and types, and each would be a
 * series of its own in every scrape and in Prometheus for months. So a limited number is told by name, and the rest
 * together as one, so that sums stay right.
 */

export const maxLabels = 100
/** The label of all that are not told by name. */
export const otherLabel = '_other'
