/** Parses durations such as `5m`, `1h30m`, `90 seconds` or `1h 30min`. */

const second = 1
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** The units that Falconeri accepts. */
const units: Readonly<Record<string, number>> = {
  ...named(0.001 * second, 'ms', 'msec', 'millis'),
  ...named(second, 's', 'sec', 'secs', 'second', 'seconds'),
  ...named(minute, 'm', 'min', 'mins', 'minute', 'minutes'),
  ...named(hour, 'h', 'hr', 'hrs', 'hour', 'hours'),
  ...named(day, 'd', 'day', 'days'),
  ...named(7 * day, 'w', 'wk', 'wks', 'week', 'weeks'),
  ...named(30.44 * day, 'M', 'month', 'months'),
  ...named(365.25 * day, 'y', 'yr', 'yrs', 'year', 'years'),
}

function named(seconds: number, ...names: readonly string[]) {
  return Object.fromEntries(names.map(name => [name, seconds]))
}

/** The duration in seconds; undefined: the text is not a duration. */
export function readDuration(text: string): number | undefined {
  const parts = [...text.matchAll(/\s*(\d+)\s*([a-zA-Z]+)\s*/gy)]
  const isWhole = parts.length > 0 && parts.map(([part]) => part).join('') === text
  if (!isWhole || parts.some(([, , unit]) => units[unit!] === undefined)) return undefined
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * units[unit!]!, 0)
}
