/** What must hold between the fields of one object: the check, and the same as JSON Schema beside it. */
import type { Schema } from '../kernel/check.ts'

export interface Rule {
  readonly at: string
  readonly why: string
  readonly schema: Schema
  holds(written: Record<string, unknown>): boolean
}

const isSaid = (value: unknown) => value !== undefined
const isOpen = (open: unknown) => open === true || open === 'untilDone'
const saysOpen = { required: ['open'], properties: { open: { enum: [true, 'untilDone'] } } }

function notBoth(one: string, other: string): Rule {
  return {
    at: one,
    why: `cannot stand beside ${other}: the tasks of a stage come from one of them`,
    schema: { not: { required: [one, other] } },
    holds: stage => !(isSaid(stage[one]) && isSaid(stage[other])),
  }
}

const sources = ['payload', 'payloads', 'forEach'] as const

export const stageRules: readonly Rule[] = [
  notBoth('payloads', 'payload'),
  notBoth('forEach', 'payload'),
  notBoth('forEach', 'payloads'),
  {
    at: 'task',
    why: 'must be there: only a mere gate and an open stage without payloads go without',
    schema: {
      anyOf: [
        { required: ['task'] },
        {
          anyOf: [{ required: ['gate'] }, saysOpen],
          not: { anyOf: sources.map(source => ({ required: [source] })) },
        },
      ],
    },
    holds: stage =>
      isSaid(stage.task) ||
      ((isSaid(stage.gate) || isOpen(stage.open)) && !sources.some(source => isSaid(stage[source]))),
  },
]

export const jobRules: readonly Rule[] = [
  {
    at: 'stages',
    why: 'must be there: only an open job goes without',
    schema: { anyOf: [{ required: ['stages'] }, saysOpen] },
    holds: job => isSaid(job.stages) || isOpen(job.open),
  },
]
