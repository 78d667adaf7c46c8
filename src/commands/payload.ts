/** Reads what a command task was given. What nobody could run is set aside for people, and says what is wrong. */

import type { CommandPayload, DatumInput, RunPlan, SecretRef } from '../kernel/datum.ts'
import { type Field, faultOf, field, isObject, nested, number, oneOf, orNull, text } from '../schema/check.ts'
import { isId } from '../schema/fields.ts'
import { DeadLetter } from '../worker/errors.ts'

type FieldsOf<T> = Readonly<Record<keyof T, Field>>

const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/

const plainText = field({}, argument)
const command = listOf(plainText, 'be a list of texts: the program, then its arguments')

const secretName = field({}, secretNameFault)
const secretRef: FieldsOf<SecretRef> = { secret: secretName, key: secretName, optional: oneOf([true, false]) }

const run: FieldsOf<RunPlan> = {
  command: field({}, value => faultOf(command, value) ?? programFault((value as string[])[0])),
  env: mapOf(plainText),
  secrets: mapOf(nested(secretRef, ['secret', 'key'])),
  permanentExitCodes: listOf(number({ from: 1, to: 255, whole: true }), 'be a list of exit codes, 1 to 255'),
  mount: orNull(
    field({}, value =>
      typeof value === 'string' && /^\/[^\0]*[^/\0]$/.test(value) ? undefined : 'be an absolute path, not "/"',
    ),
  ),
}

const aText = field({}, value => (typeof value === 'string' ? undefined : 'be a text'))

const input: FieldsOf<DatumInput> = {
  name: text(1000),
  uri: text(8000),
  path: aText,
  size: number({ from: 0, to: Number.MAX_SAFE_INTEGER, whole: true }),
  version: aText,
  stageId: field({}, value => (isId(value) ? undefined : 'be the id of a stage')),
}

const inputShape = nested(input, ['name', 'uri', 'path'])
const placedInput = field({}, value => faultOf(inputShape, value) ?? placeFault(value))

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

type Given = Partial<CommandPayload> & { readonly run: Partial<RunPlan> & Pick<RunPlan, 'command'> }

/** What is left out is empty: `{ run: { command: ['true'] } }` is a whole payload. */
export function readPayload(given: unknown): CommandPayload {
  const fault = faultOf(payload, given)
  if (fault !== undefined) {
    throw new DeadLetter('validation_failed', `The payload of a command task must ${fault}.`, 'input')
  }
  const { run, inputs = [], outputs = null, exact } = given as Given
  const { command, env = {}, secrets = {}, permanentExitCodes = [], mount = null } = run
  return { run: { command, env, secrets, permanentExitCodes, mount }, inputs, outputs, ...(exact && { exact }) }
}

/** What an argument or a variable can be: a system call ends it at a NUL. */
function argument(value: unknown): string | undefined {
  return typeof value === 'string' && !value.includes('\0') ? undefined : 'be a text without NUL'
}

/** A secret's folder or file: a name, never a way out of the folder of secrets. */
function secretNameFault(value: unknown): string | undefined {
  const isPlain = typeof value === 'string' && /^[-._a-zA-Z0-9]{1,253}$/.test(value) && !/^\.\.?$/.test(value)
  return isPlain ? undefined : 'be a name of letters, digits, ".", "_" and "-"'
}

function programFault(program: string | undefined): string | undefined {
  if (program === undefined || program === '') return 'begin with a program'
  return program.startsWith('-') ? 'begin with a program, not with an option' : undefined
}

function placeFault(value: unknown): string | undefined {
  const { uri, path } = value as DatumInput
  if (uri.endsWith('/')) return path === '' || path.endsWith('/') ? undefined : 'have a "path" that ends in "/" too'
  return path === '' || path.endsWith('/') ? 'have a "path" that names a file' : undefined
}

function listOf(item: Field, otherwise: string): Field {
  return field({}, value => {
    if (!Array.isArray(value)) return otherwise
    for (const [index, one] of value.entries()) {
      const fault = faultOf(item, one)
      if (fault !== undefined) return `${otherwise}; [${index}] must ${fault}`
    }
    return undefined
  })
}

function mapOf(item: Field): Field {
  return field({}, value => {
    if (!isObject(value)) return 'be an object'
    for (const [name, one] of Object.entries(value)) {
      if (!variableName.test(name)) return `have names of letters, digits and "_", not ${JSON.stringify(name)}`
      const fault = faultOf(item, one)
      if (fault !== undefined) return `have a "${name}" that must ${fault}`
    }
    return undefined
  })
}
