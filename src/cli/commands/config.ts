import { type ResolvedSettings, serverOf } from '../../config/resolve-settings.ts'
import { flagSettings, type Setting, type SettingName, settings } from '../../config/settings.ts'
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
  { header: 'SETTING', value: ({ name }) => name },
  {
    header: 'VALUE',
    value: ({ value }) => (typeof value === 'string' ? value : value === undefined ? '' : sanitizeJson(value)),
  },
  { header: 'FROM', value: ({ from, by }) => (by === '' ? from : `${from} ${by}`), minWidth: 12 },
]

export const config = command({
  name: 'config',
  summary: 'Print the settings and where each value comes from.',
  details: 'Flags override environment variables, which override pawl.config.*, which overrides the defaults.',
  settings: flagSettings,
  async run({ resolved }) {
    const rows = (Object.keys(settings) as SettingName[]).map((name): Row => {
      const { from, name: by } = resolved.sources[name]
      return { name, value: shownValue(name, resolved), from, by }
    })
    const data = Object.fromEntries(rows.map(({ name, value, from, by }) => [name, { value: value ?? null, from, by }]))
    return { data, show: ({ width }) => table(rows, columns, width) }
  },
})

function shownValue(name: SettingName, resolved: ResolvedSettings): unknown {
  if (name === 'server') return serverOf(resolved)
  const value = resolved.values[name]
  const { secret }: Setting = settings[name]
  return secret && typeof value === 'string' ? masked(value) : value
}

/** In a URL, only the password is secret. */
function masked(value: string): string {
  if (!URL.canParse(value)) return '•••'
  const url = new URL(value)
  if (url.password !== '') url.password = '***'
  if (url.searchParams.has('password')) url.searchParams.set('password', '***')
  return url.href
}
