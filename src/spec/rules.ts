/** Rules between the fields of one object, each as a check and as JSON Schema. */
import { commandType } from '../kernel/datum.ts'
import type { Schema } from '../schema/check.ts'

/** A statement about an object. */
interface Test {
  readonly schema: Schema
  holds(written: Record<string, unknown>): boolean
}

export interface Rule extends Test {
  readonly at: string
  readonly why: string
}

function has(...names: readonly string[]): Test {
  return { schema: { required: names }, holds: written => names.every(name => written[name] !== undefined) }
}

function not({ schema, holds }: Test): Test {
  return { schema: { not: schema }, holds: written => !holds(written) }
}

function any(...tests: readonly Test[]): Test {
  return {
    schema: { anyOf: tests.map(({ schema }) => schema) },
    holds: written => tests.some(test => test.holds(written)),
  }
}

/** The schemas of the two tests must have different keywords. */
function both(one: Test, other: Test): Test {
  return { schema: { ...one.schema, ...other.schema }, holds: written => one.holds(written) && other.holds(written) }
}

const isOpen: Test = {
  schema: { required: ['open'], properties: { open: { enum: [true, 'untilDone'] } } },
  holds: ({ open }) => open === true || open === 'untilDone',
}
const isCommand: Test = {
  schema: { required: ['task'], properties: { task: { const: commandType } } },
  holds: ({ task }) => task === commandType,
}

function notBoth(one: string, other: string): Rule {
  const why = `cannot be combined with ${other}: a stage takes its tasks from only one of them`
  return { at: one, why, ...not(has(one, other)) }
}

function hasNoTasks(other: string): Rule {
  return { ...notBoth('gives', other), why: `cannot be combined with ${other}: a stage with \`gives\` has no tasks` }
}

const manySources = ['payloads', 'forEach', 'inputs'].map(name => has(name))
const sources = [has('payload'), ...manySources]

function needs(one: string, others: readonly string[], why: string): Rule {
  return { at: one, why, ...any(not(has(one)), ...others.map(other => has(other))) }
}

export const stageRules: readonly Rule[] = [
  notBoth('payloads', 'payload'),
  notBoth('forEach', 'payload'),
  notBoth('forEach', 'payloads'),
  ...['task', 'run', 'payload', 'payloads', 'forEach', 'inputs', 'open'].map(hasNoTasks),
  notBoth('inputs', 'payloads'),
  notBoth('inputs', 'forEach'),
  { at: 'task', why: `cannot be "${commandType}": use \`run\` to define a command`, ...not(isCommand) },
  notBoth('run', 'task'),
  notBoth('run', 'payload'),
  notBoth('run', 'payloads'),
  notBoth('run', 'forEach'),
  {
    at: 'taskId',
    why: 'is only allowed in a stage that is declared with exactly one task',
    ...any(not(has('taskId')), has('payload'), both(any(has('task'), has('run')), not(any(isOpen, ...manySources)))),
  },
  needs('outputs', ['run', 'inputs'], 'requires `run` or `inputs`: other tasks have no output files'),
  needs('runner', ['run'], 'requires `run`: only commands have workers of their own'),
  needs('reuse', ['run'], 'requires `run`: only for commands does Pawl know what the result depends on'),
  {
    at: 'task',
    why: 'is required, unless the stage has `run` or `gives`, is only a gate, or is open and has no payloads',
    ...any(has('task'), has('run'), has('gives'), both(any(has('gate'), isOpen), not(any(...sources)))),
  },
]

export const jobRules: readonly Rule[] = [
  {
    at: 'ifThere',
    why: 'requires `id`: a job without an id of its own cannot exist yet',
    ...any(has('id'), not(has('ifThere'))),
  },
  { at: 'stages', why: 'is required, unless the job is open', ...any(has('stages'), isOpen) },
]
