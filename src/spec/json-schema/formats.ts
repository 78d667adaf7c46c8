/** The formats that are checked. Others are only annotations, as JSON Schema allows. */
import { matcherOf } from './patterns.ts'
import type { Run } from './run.ts'

const label = '[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?'
const uriCharacter = "(?:[a-zA-Z0-9\\-._~:/?@!$&'()*+,;=]|%[0-9a-fA-F]{2})"
const authority = `(?://(?:[a-zA-Z0-9\\-._~:@!$&'()*+,;=]|%[0-9a-fA-F]{2}|\\[[0-9a-fA-F:.v]+\\])*(?:[/?]${uriCharacter}*)?)`
/** A reference needs no scheme. */
const reference = `(?:${authority}|${uriCharacter}*)(?:#${uriCharacter}*)?`
const days = '(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)'
const hours = '(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)'
const word = '[^\\s"(),:;<>@[\\]\\\\.]+'
const byte = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])'
const variable = '[a-zA-Z0-9_.%]+(?::[0-9]{1,4}|\\*)?'

/** At most four groups of at most three digits, so no backtracking. */
const ipv4 = new RegExp(`^(?:${byte}\\.){3}${byte}$`)

/** Patterns for RE2, which matches in linear time. */
const patterns: Record<string, string> = {
  uuid: '^[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$',
  email: `^(?:"[^"\\\\]*"|${word}(?:\\.${word})*)@(?:${label}(?:\\.${label})*|\\[[0-9a-fA-FvVIP:.]+\\])$`,
  ipv4: ipv4.source,
  hostname: `^${label}(?:\\.${label})*$`,
  duration: `^P(?:[0-9]+W|${days}(?:T${hours})?|T${hours})$`,
  uri: `^[a-zA-Z][a-zA-Z0-9+.-]*:${reference}$`,
  'uri-reference': `^${reference}$`,
  'uri-template': `^(?:[^\\s"'<>\\\\^\`{|}]|\\{[+#./;?&=,!@|]?${variable}(?:,${variable})*\\})*$`,
  url: `^(?:https?|ftp)://[^\\s/?#]+(?:[/?#]\\S*)?$`,
  'json-pointer': '^(?:/(?:[^~/]|~[01])*)*$',
  'json-pointer-uri-fragment': `^#(?:/(?:[a-zA-Z0-9_\\-.!$&'()*+,;:=@]|%[0-9a-fA-F]{2}|~[01])*)*$`,
  'relative-json-pointer': '^(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^~/]|~[01])*)*)$',
}

const functions: Record<string, (text: string) => boolean> = {
  date: isDate,
  time: isTime,
  'date-time': text => /^[t\s]$/i.test(text[10] ?? '') && isDate(text.slice(0, 10)) && isTime(text.slice(11)),
  ipv6: isIPv6,
  regex: isRegex,
}

/** The check of a format; undefined: the format is not checked. */
export function formatOf(run: Run, format: string): ((text: string) => boolean) | undefined {
  if (Object.hasOwn(functions, format)) {
    return text => {
      run.meter.spend(1 + text.length / 4)
      return functions[format]!(text)
    }
  }
  return Object.hasOwn(patterns, format) ? matcherOf(run, patterns[format]!) : undefined
}

function isDate(text: string): boolean {
  const [, year, month, day] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text)?.map(Number) ?? []
  if (year === undefined) return false
  // Date treats years below 100 as 19xx. The calendar repeats every 400 years.
  const date = new Date(Date.UTC(year + 400, month! - 1, day))
  return date.getUTCMonth() === month! - 1 && date.getUTCDate() === day
}

function isTime(text: string): boolean {
  const found = /^(\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(?:z|([+-])(\d{2}):(\d{2}))$/i.exec(text)
  if (found === null) return false
  const [, hour, minute, second, sign, offsetHour = '0', offsetMinute = '0'] = found
  if (Number(hour) > 23 || Number(minute) > 59 || Number(offsetHour) > 23 || Number(offsetMinute) > 59) return false
  if (Number(second) < 60) return true
  // A leap second is the last second of a UTC day.
  const offset = (sign === '-' ? -1 : 1) * (Number(offsetHour) * 60 + Number(offsetMinute))
  const minutes = (Number(hour) * 60 + Number(minute) - offset + 1440) % 1440
  return Number(second) === 60 && minutes === 1439
}

/** Eight groups. The last two may be an IPv4 address, and `::` stands for omitted groups. */
function isIPv6(text: string): boolean {
  if (text.length > 45) return false
  const [start = '', end, ...more] = text.split('::')
  const groups = [start, end ?? ''].flatMap(side => (side === '' ? [] : side.split(':')))
  const last = groups.at(-1) ?? ''
  const isMixed = last.includes('.') && text.endsWith(last)
  const isLastRight = !isMixed || ipv4.test(last)
  const areRight = (isMixed ? groups.slice(0, -1) : groups).every(group => /^[0-9a-f]{1,4}$/i.test(group))
  const length = groups.length + (isMixed ? 1 : 0)
  return more.length === 0 && isLastRight && areRight && (end === undefined ? length === 8 : length < 8)
}

/** A longer text could take seconds to parse. */
const longestRegex = 1000

function isRegex(text: string): boolean {
  if (text.length > longestRegex) return false
  try {
    new RegExp(text, 'u')
    return true
  } catch {
    return false
  }
}
