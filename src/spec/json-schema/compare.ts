import type { Meter } from '../meter.ts'
import { isObject } from './schema.ts'

/** The canonical text of a value: equal for values that JSON Schema considers equal, whatever the order of names. */
export function canonical(meter: Meter, value: unknown): string {
  if (Array.isArray(value)) {
    meter.spend(1)
    return `[${value.map(item => canonical(meter, item)).join(',')}]`
  }
  if (isObject(value)) {
    const names = Object.keys(value).sort()
    meter.spend(1 + names.length)
    return `{${names.map(name => `${text(meter, name)}:${canonical(meter, value[name])}`).join(',')}}`
  }
  // -0 equals 0.
  return typeof value === 'string' ? text(meter, value) : text(meter, value === 0 ? 0 : value)
}

function text(meter: Meter, value: unknown): string {
  meter.spend(typeof value === 'string' ? 1 + value.length / 16 : 1)
  return JSON.stringify(value)
}

/** Whether JSON Schema considers two values equal. */
export function isSame(meter: Meter, one: unknown, other: unknown): boolean {
  meter.spend(typeof one === 'string' ? 0.25 + one.length / 64 : 0.25)
  if (one === other) return true
  if (Array.isArray(one)) {
    if (!Array.isArray(other) || one.length !== other.length) return false
    return one.every((item, index) => isSame(meter, item, other[index]))
  }
  if (!isObject(one) || !isObject(other)) return false
  const names = Object.keys(one)
  if (names.length !== Object.keys(other).length) return false
  return names.every(name => Object.hasOwn(other, name) && isSame(meter, one[name], other[name]))
}
