/** Parses the payload of a command task. An invalid payload goes to the dead-letter queue with an explanation. */

import type { CommandPayload, DatumInput, RunPlan, SecretRef } from '../kernel/datum.ts'
import { type Field, faultOf, field, isObject, nested, number, oneOf, orNull, text } from '../schema/check.ts'
import { isId } from '../schema/fields.ts'
import { DeadLetter } from '../worker/errors.ts'

type FieldsOf<T> = Readonly<Record<keyof T, Field>>

const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/

const plainText = field({}, argument)
const command = listOf(plainText, 'be a list of strings: the program, then its arguments')

const secretName = field({}, secretNameError)
const secretRef: FieldsOf<SecretRef> = { secret: secretName, key: secretName, optional: oneOf([true, false]) }

const run: FieldsOf<RunPlan> = {
  command: field({}, value => faultOf(command, value) ?? programError((value as string[])[0])),
  env: mapOf(plainText),
  secrets: mapOf(nested(secretRef, ['secret', 'key'])),
  permanentExitCodes: listOf(number({ from: 1, to: 255, whole: true }), 'be a list of exit codes, 1 to 255'),
  mount: orNull(
    field({}, value =>
      typeof value === 'string' && /^\/[^\0]*[^/\0]$/.test(value) ? undefined : 'be an absolute path, not "/"',
    ),
  ),
}

const anyString = field({}, value => (typeof value === 'string' ? undefined : 'be a string'))

const input: FieldsOf<DatumInput> = {
  name: text(1000),
  uri: text(8000),
  path: anyString,
  size: number({ from: 0, to: Number.MAX_SAFE_INTEGER, whole: true }),
  version: anyString,
  stageId: field({}, value => (isId(value) ? undefined : 'be the id of a stage')),
}

const inputShape = nested(input, ['name', 'uri', 'path'])
const placedInput = field({}, value => faultOf(inputShape, value) ?? pathError(value))

const payload = nested(
  {
    run: nested(run, ['command']),
    inputs: listOf(placedInput, 'be a list of inputs'),
    outputs: orNull(
      field({}, value =>
        typeof value === 'string' && /^[a-z][a-z0-9]*:\/\/.*\/$/s.test(value) ? undefined : 'be a URI that ends in "/"',
      ),
    ),
    exact: field({}, value => (value === true ? undefined : 'be true')),
  } satisfies FieldsOf<CommandPayload>,
  ['run'],
)

type WrittenPayload = Partial<CommandPayload> & { readonly run: Partial<RunPlan> & Pick<RunPlan, 'command'> }

/** Fields that are left out are empty: `{ run: { command: ['true'] } }` is a complete payload. */
export function readPayload(value: unknown): CommandPayload {
  const error = faultOf(payload, value)
  if (error !== undefined) {
    throw new DeadLetter('validation_failed', `The payload of a command task must ${error}.`, 'input')
  }
  const { run, inputs = [], outputs = null, exact } = value as WrittenPayload
  const { command, env = {}, secrets = {}, permanentExitCodes = [], mount = null } = run
  return { run: { command, env, secrets, permanentExitCodes, mount }, inputs, outputs, ...(exact && { exact }) }
}

/** Valid as an argument or variable: system calls end a text at a NUL. */
function argument(value: unknown): string | undefined {
  return typeof value === 'string' && !value.includes('\0') ? undefined : 'be a string without NUL'
}

/** Accepts the name of a secret's folder or file, but no path to a file outside the folder of secrets. */
function secretNameError(value: unknown): string | undefined {
  const isPlain = typeof value === 'string' && /^[-._a-zA-Z0-9]{1,253}$/.test(value) && !/^\.\.?$/.test(value)
  return isPlain ? undefined : 'be a name of letters, digits, ".", "_" and "-"'
}

function programError(program: string | undefined): string | undefined {
  if (program === undefined || program === '') return 'begin with a program'
  return program.startsWith('-') ? 'begin with a program, not with an option' : undefined
}

function pathError(value: unknown): string | undefined {
  const { uri, path } = value as DatumInput
  if (uri.endsWith('/')) return path === '' || path.endsWith('/') ? undefined : 'have a "path" that also ends in "/"'
  return path === '' || path.endsWith('/') ? 'have a "path" that names a file' : undefined
}

function listOf(item: Field, otherwise: string): Field {
  return field({}, value => {
    if (!Array.isArray(value)) return otherwise
    for (const [index, one] of value.entries()) {
      const error = faultOf(item, one)
      if (error !== undefined) return `${otherwise}; [${index}] must ${error}`
    }
    return undefined
  })
}

function mapOf(item: Field): Field {
  return field({}, value => {
    if (!isObject(value)) return 'be an object'
    for (const [name, one] of Object.entries(value)) {
      if (!variableName.test(name)) return `have names of letters, digits and "_", not ${JSON.stringify(name)}`
      const error = faultOf(item, one)
      if (error !== undefined) return `have a "${name}" that must ${error}`
    }
    return undefined
  })
}
