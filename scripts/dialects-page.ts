/** The tables of docs/dialects.md are read off the dialects: their words and their routes. */
import { dialects } from '../src/dialects/all.ts'
import { type Dialect, neededFor } from '../src/dialects/dialect.ts'
import type { Word } from '../src/dialects/words.ts'
import { artifactLifecycle } from '../src/kernel/artifact.ts'
import { jobLifecycle } from '../src/kernel/job.ts'
import { type Lifecycle, statesOf } from '../src/kernel/lifecycle.ts'
import { stageLifecycle } from '../src/kernel/stage.ts'
import { taskLifecycle } from '../src/kernel/task.ts'

const all: readonly Dialect[] = Object.values(dialects)

/** The page with its tables written anew. Every dialect must have a section. */
export function dialectsPage(page: string): string {
  const tables = new Map(all.map(dialect => [`routes of ${dialect.name}`, routeTable(dialect)]))
  tables.set('words', [taskLifecycle, stageLifecycle, jobLifecycle, artifactLifecycle].map(wordTable).join('\n'))
  const missing = [...tables.keys()].filter(name => !page.includes(`<!-- ${name} -->`))
  if (missing.length > 0) throw new Error(`docs/dialects.md has no place for: ${missing.join(', ')}`)
  return page.replace(
    /(<!-- (words|routes of \w+) -->\n).*?(<!-- end of \w+ -->)/gs,
    (_, begin, name, end) => `${begin}${tables.get(name)}${end}`,
  )
}

type Table = Readonly<Record<string, Word<never>>> | null

function wordTable(lifecycle: Lifecycle): string {
  const tables = all.flatMap(({ name, words }) => {
    const table = words[lifecycle.entity as 'task'] as Table
    return table === null ? [] : [{ name, table }]
  })
  const rows = statesOf(lifecycle).map(state => [state, ...tables.map(({ table }) => wordLabel(table[state]!))])
  return [
    `### ${lifecycle.entity}\n`,
    line([`Pawl ${lifecycle.entity}`, ...tables.map(({ name }) => name)]),
    line(['---', ...tables.map(() => '---')]),
    ...rows.map(line),
    '',
  ].join('\n')
}

const wordLabel = (word: Word<never>) => (word === null ? '–' : typeof word === 'string' ? word : word.label)

const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`

function routeTable({ routes }: Dialect): string {
  const rows = routes.map(route => line([`\`${route.method} ${route.path}\``, route.summary, neededFor(route)]))
  return `${[line(['route', 'does', 'needs']), line(['---', '---', '---']), ...rows].join('\n')}\n`
}
