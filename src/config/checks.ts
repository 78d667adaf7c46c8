/** Checks for the values of settings. */

import { imagePattern } from '../kernel/pod-rules.ts'
import { taskTypeFields } from '../protocol/fields.ts'
import { faultOf, field, isObject, text } from '../schema/check.ts'
import { name } from '../schema/fields.ts'
import { dialectList } from '../server/options.ts'

export const database = field({ type: 'string' }, value =>
  typeof value === 'string' && /^postgres(ql)?:\/\//.test(value) ? undefined : 'be a URL that begins with postgres://',
)

export const queues = field({ type: 'array' }, value =>
  Array.isArray(value) && value.length > 0 && value.every(item => faultOf(name, item) === undefined)
    ? undefined
    : 'be a list of names',
)

export const folders = field({ type: 'array' }, value =>
  Array.isArray(value) && value.every(item => faultOf(text(2000), item) === undefined)
    ? undefined
    : 'be a list of folders',
)

export const names = field({ type: 'array' }, value =>
  Array.isArray(value) && value.every(item => faultOf(text(253), item) === undefined)
    ? undefined
    : 'be a list of names',
)

export const images = field({ type: 'array' }, value =>
  Array.isArray(value) && value.every(item => faultOf(text(500), item) === undefined && imagePattern.test(item))
    ? undefined
    : 'be a list of images, each exact or ending in /*, :* or @*, or * for all',
)

export const dialectsOrNone = field({ type: 'array' }, value =>
  ['["none"]', '["all"]'].includes(JSON.stringify(value)) ? undefined : faultOf(dialectList, value),
)

export const taskTypes = field({ type: 'object' }, value => {
  if (!isObject(value)) return 'be an object, with a type of task for each name'
  for (const [type, options] of Object.entries(value)) {
    const fault = faultOf(name, type) ?? typeFault(options)
    if (fault !== undefined) return `have a type "${type}" that must ${fault}`
  }
  return undefined
})

function typeFault(options: unknown): string | undefined {
  if (!isObject(options)) return 'be an object'
  for (const [option, value] of Object.entries(options)) {
    const check = Object.hasOwn(taskTypeFields, option) ? taskTypeFields[option] : undefined
    if (check === undefined) return `not have "${option}" (it may have ${Object.keys(taskTypeFields).join(', ')})`
    const fault = faultOf(check, value)
    if (fault !== undefined) return `have a "${option}" that must ${fault}`
  }
  return undefined
}

export const pipelines = field({ type: 'object' }, value => {
  if (!isObject(value)) return 'be an object, with a job spec or the file of one for each name'
  for (const [pipeline, spec] of Object.entries(value)) {
    const fault = faultOf(name, pipeline) ?? (isObject(spec) ? undefined : faultOf(text(2000), spec))
    if (fault !== undefined) return `have a pipeline "${pipeline}" that must ${fault}`
  }
  return undefined
})
