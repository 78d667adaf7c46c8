/** The OpenAPI shapes of Kubernetes, as the official client carries them. Anything outside of them is an error. */
import * as client from '@kubernetes/client-node'

interface Attribute {
  readonly baseName: string
  readonly type: string
}

const models = client as unknown as Record<string, { getAttributeTypeMap?(): readonly Attribute[] } | undefined>

/** Returns the places where an object has an unknown field, or a value of the wrong type. */
export function faultsInShape(value: unknown, type: string, at = type): string[] {
  // Kubernetes writes null for absent values.
  if (value === undefined || value === null || type === 'any') return []
  const list = /^Array<(.+)>$/.exec(type)?.[1]
  if (list !== undefined) {
    if (!Array.isArray(value)) return [`${at} must be a list`]
    return value.flatMap((item, index) => faultsInShape(item, list, `${at}[${index}]`))
  }
  const map = /^\{ \[key: string\]: (.+); \}$/.exec(type)?.[1]
  if (map !== undefined) {
    if (typeof value !== 'object') return [`${at} must be an object`]
    return Object.entries(value).flatMap(([key, item]) => faultsInShape(item, map, `${at}.${key}`))
  }
  const attributes = models[type]?.getAttributeTypeMap?.()
  if (attributes === undefined) return isOf(value, type) ? [] : [`${at} must be a ${type}, not ${typeof value}`]
  if (typeof value !== 'object') return [`${at} must be an object`]
  return Object.entries(value).flatMap(([key, item]) => {
    const known = attributes.find(({ baseName }) => baseName === key)
    return known === undefined ? [`${at} knows no ${key}`] : faultsInShape(item, known.type, `${at}.${key}`)
  })
}

function isOf(value: unknown, type: string): boolean {
  if (type === 'IntOrString') return typeof value === 'string' || Number.isInteger(value)
  if (type === 'Date' || type.endsWith('MicroTime'))
    return typeof value === 'string' && !Number.isNaN(Date.parse(value))
  return typeof value === type
}
