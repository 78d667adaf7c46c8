/** What a worker says that payloads of a type look like, as JSON Schema; for whoever writes one without that worker. */
import { type Schema, Validator } from '@cfworker/json-schema'

export type PayloadSchema = Readonly<Record<string, unknown>>

/** Why a payload does not fit; none: it does. Only what is wrong itself is told, not again of all that holds it. */
export function faultsIn(schema: PayloadSchema, payload: unknown): string[] {
  const { errors } = new Validator(schema as Schema, '2020-12', false).validate(payload)
  return errors
    .filter(({ instanceLocation: at, keyword }) => !(isHolder(keyword) && errors.some(other => isWithin(other, at))))
    .map(({ instanceLocation, error }) => {
      const at = instanceLocation.replace(/^#\/?/, '').replaceAll('/', '.')
      return at === '' ? error : `${at}: ${error}`
    })
}

const isHolder = (keyword: string) => keyword === 'properties' || keyword === 'items' || keyword === 'prefixItems'
const isWithin = ({ instanceLocation }: { instanceLocation: string }, at: string) =>
  instanceLocation.startsWith(`${at}/`)

/** Why nothing can be held against this; undefined: it can be used. */
export function faultOf(schema: PayloadSchema): string | undefined {
  try {
    faultsIn(schema, null)
    return undefined
  } catch (error) {
    return `be a JSON Schema: ${(error as Error).message}`
  }
}
