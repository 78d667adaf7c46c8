import type { Settled } from '../../config/resolve.ts'
import { serverOf } from '../../config/resolve.ts'
import { type Setting, type SettingName, settings } from '../../config/settings.ts'
import { sanitizeJson } from '../../kernel/sanitize.ts'
import { command } from '../command.ts'
import { type Column, table } from '../table.ts'

interface Row {
  readonly name: SettingName
  readonly value: unknown
  readonly from: string
  readonly by: string
}

const columns: readonly Column<Row>[] = [
  { head: 'SETTING', of: ({ name }) => name },
  {
    head: 'VALUE',
    of: ({ value }) => (typeof value === 'string' ? value : value === undefined ? '' : sanitizeJson(value)),
  },
  { head: 'FROM', of: ({ from, by }) => (by === '' ? from : `${from} ${by}`), least: 12 },
]

const flags = (Object.keys(settings) as SettingName[]).filter(name => settings[name].kind !== 'object')

export const config = command({
  name: 'config',
  summary: 'Print the settings and where each value comes from.',
  more: 'A flag goes before the environment, that before pawl.config.*, that before the default.',
  settings: flags,
  async run({ settled }) {
    const rows = (Object.keys(settings) as SettingName[]).map((name): Row => {
      const { from, name: by } = settled.sources[name]
      return { name, value: shownOf(name, settled), from, by }
    })
    const data = Object.fromEntries(rows.map(({ name, value, from, by }) => [name, { value: value ?? null, from, by }]))
    return { data, show: ({ width }) => table(rows, columns, width) }
  },
})

function shownOf(name: SettingName, settled: Settled): unknown {
  if (name === 'server') return serverOf(settled)
  const value = settled.values[name]
  const { secret }: Setting = settings[name]
  return secret && typeof value === 'string' ? masked(value) : value
}

/** Of a URL only the password is a secret. */
function masked(value: string): string {
  if (!URL.canParse(value)) return '•••'
  const url = new URL(value)
  if (url.password !== '') url.password = '***'
  if (url.searchParams.has('password')) url.searchParams.set('password', '***')
  return url.href
}
