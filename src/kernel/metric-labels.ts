/**
 * Limits the labels of metrics. Anybody who may queue a task can invent queues and types, and each would be a series of
 * its own in every scrape, and in Prometheus for months. So only a limited number is named, and the others are summed
 * under one label, which keeps totals correct.
 */

export const maxLabels = 100
/** The label for everything that is not named individually. */
export const otherLabel = '_other'
