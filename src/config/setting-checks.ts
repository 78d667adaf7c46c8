/** Checks for the values of settings. */

import { imagePattern } from '../kernel/pod-rules.ts'
import { taskTypeFields } from '../protocol/tasks/new-task.ts'
import { type Fields, faultOf, field, isObject, text } from '../schema/check.ts'
import { name } from '../schema/fields.ts'
import { serverFields } from '../server/options.ts'

export const database = field({ type: 'string' }, value =>
  typeof value === 'string' && /^postgres(ql)?:\/\//.test(value) ? undefined : 'be a URL that begins with postgres://',
)

export const queues = field({ type: 'array' }, value =>
  Array.isArray(value) && value.length > 0 && value.every(item => faultOf(name, item) === undefined)
    ? undefined
    : 'be a list of names',
)

const listThat = (isItem: (item: string) => boolean, what: string) =>
  field({ type: 'array' }, value => (Array.isArray(value) && value.every(isItem) ? undefined : `be a list of ${what}`))

const isText = (longest: number) => {
  const check = text(longest)
  return (item: unknown) => faultOf(check, item) === undefined
}

export const folders = listThat(isText(2000), 'folders')

export const modules = listThat(isText(2000), 'files or folders')

export const names = listThat(isText(253), 'names')

const isShort = isText(500)

export const images = listThat(
  item => isShort(item) && imagePattern.test(item),
  'images, each exact or ending in /*, :* or @*, or * for all',
)

export const dialectsOrNone = field({ type: 'array' }, value =>
  ['["none"]', '["all"]'].includes(JSON.stringify(value)) ? undefined : faultOf(serverFields.dialects, value),
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
    const fields: Fields = taskTypeFields
    const check = Object.hasOwn(fields, option) ? fields[option] : undefined
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
