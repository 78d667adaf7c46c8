/** Rules between the fields of one object, each as a check and as JSON Schema. */

import { commandType } from '../kernel/datum.ts'
import type { Schema } from '../schema/check.ts'

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

function hasNoTasks(other: string): Rule {
  return { ...notBoth('gives', other), why: `cannot stand beside ${other}: a stage that gives something has no tasks` }
}

const manySources = ['payloads', 'forEach', 'inputs'] as const
const sources = ['payload', ...manySources] as const

function needs(one: string, others: readonly string[], why: string): Rule {
  return {
    at: one,
    why,
    schema: { anyOf: [{ not: { required: [one] } }, ...others.map(other => ({ required: [other] }))] },
    holds: stage => !isSaid(stage[one]) || others.some(other => isSaid(stage[other])),
  }
}

export const stageRules: readonly Rule[] = [
  notBoth('payloads', 'payload'),
  notBoth('forEach', 'payload'),
  notBoth('forEach', 'payloads'),
  ...['task', 'run', 'payload', 'payloads', 'forEach', 'inputs', 'open'].map(hasNoTasks),
  notBoth('inputs', 'payloads'),
  notBoth('inputs', 'forEach'),
  {
    at: 'task',
    why: `cannot be "${commandType}": say what it runs with \`run\``,
    schema: { not: { required: ['task'], properties: { task: { const: commandType } } } },
    holds: stage => stage.task !== commandType,
  },
  notBoth('run', 'task'),
  notBoth('run', 'payload'),
  notBoth('run', 'payloads'),
  notBoth('run', 'forEach'),
  {
    at: 'taskId',
    why: 'is for a stage that is declared with one task',
    schema: {
      anyOf: [
        { not: { required: ['taskId'] } },
        { required: ['payload'] },
        {
          anyOf: [{ required: ['task'] }, { required: ['run'] }],
          not: { anyOf: [saysOpen, ...manySources.map(source => ({ required: [source] }))] },
        },
      ],
    },
    holds: stage =>
      !isSaid(stage.taskId) ||
      isSaid(stage.payload) ||
      ((isSaid(stage.task) || isSaid(stage.run)) &&
        !isOpen(stage.open) &&
        !manySources.some(source => isSaid(stage[source]))),
  },
  needs('outputs', ['run', 'inputs'], 'needs `run` or `inputs`: other tasks put out no files'),
  needs('runner', ['run'], 'needs `run`: only commands have workers of their own'),
  needs('reuse', ['run'], 'needs `run`: only of a command is it known what its result depends on'),
  {
    at: 'task',
    why: 'must be there, or `run`, or `gives`: only a mere gate and an open stage without payloads go without',
    schema: {
      anyOf: [
        { required: ['task'] },
        { required: ['run'] },
        { required: ['gives'] },
        {
          anyOf: [{ required: ['gate'] }, saysOpen],
          not: { anyOf: sources.map(source => ({ required: [source] })) },
        },
      ],
    },
    holds: stage =>
      isSaid(stage.task) ||
      isSaid(stage.run) ||
      isSaid(stage.gives) ||
      ((isSaid(stage.gate) || isOpen(stage.open)) && !sources.some(source => isSaid(stage[source]))),
  },
]

export const jobRules: readonly Rule[] = [
  {
    at: 'ifThere',
    why: 'needs an `id`: a job that has none yet is not there',
    schema: { anyOf: [{ required: ['id'] }, { not: { required: ['ifThere'] } }] },
    holds: job => isSaid(job.id) || !isSaid(job.ifThere),
  },
  {
    at: 'stages',
    why: 'must be there: only an open job goes without',
    schema: { anyOf: [{ required: ['stages'] }, saysOpen] },
    holds: job => isSaid(job.stages) || isOpen(job.open),
  },
]
