import { storeOf } from '../../config/resolve-settings.ts'
import { storeSettings } from '../../config/settings.ts'
import type { Examination, Finding } from '../../protocol/admin/admin.ts'
import { command } from '../command.ts'
import { connectApi, existingStore, opensStore } from '../connect-api.ts'
import { counted } from '../counted.ts'
import { exitCodes } from '../error-message.ts'
import { type Line, type Style, styled } from '../styled-line.ts'

export const migrate = command({
  name: 'migrate',
  summary: 'Create a store, or migrate it to this version.',
  settings: ['database', 'data', 'schema', ...storeSettings],
  async run({ resolved }) {
    const { openEngine } = await import('../../engine/engine.ts')
    const { migrate: migrateStore } = await import('../../store/schema/migrate.ts')
    await using engine = await openEngine({ ...storeOf(resolved), migrate: false })
    const result = await migrateStore(engine.context.sql)
    const { applied, version } = result
    const text =
      applied === 0
        ? `The store is up to date at version ${version}.`
        : `Applied ${counted(applied, 'migration')}. The store is now at version ${version}.`
    return { data: result, show: () => [text] }
  },
})

const marks: Readonly<Record<Finding['grade'], readonly [string, Style]>> = {
  bad: ['✗', 'red'],
  warning: ['!', 'yellow'],
  note: ['·', 'dim'],
}

export const doctor = command({
  name: 'doctor',
  summary: 'Check a store for broken rules, pinned snapshots, bloat, clock skew and schema drift.',
  settings: ['server', 'key', 'database', 'data', 'schema', ...storeSettings],
  async run({ resolved }) {
    const examination = await examine()
    return {
      data: examination,
      show: () => examinationLines(examination),
      code: examination.healthy ? exitCodes.good : exitCodes.bad,
    }

    async function examine(): Promise<Examination> {
      if (!opensStore(resolved)) {
        await using connection = await connectApi(resolved)
        return await connection.api.doctor()
      }
      const { openEngine } = await import('../../engine/engine.ts')
      // No migration: the doctor examines the store as it is.
      await using engine = await openEngine({ ...existingStore(resolved), migrate: false })
      return await engine.doctor()
    }
  },
})

function examinationLines({ store, findings, healthy }: Examination): Line[] {
  return [
    store,
    ...findings.flatMap(({ grade, what, todo }): Line[] => {
      const [mark, style] = marks[grade]
      return [[styled(style, mark), ` ${what}`], `    ${todo}`]
    }),
    healthy ? 'All rules hold.' : styled('red', 'Problems were found; see above.'),
  ]
}
