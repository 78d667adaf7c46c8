/** Commands that look at a store as a whole. */
import { storeOf } from '../../config/resolve.ts'
import { storeSettings } from '../../config/settings.ts'
import type { Examination, Finding } from '../../protocol/admin/operate.ts'
import { command } from '../command.ts'
import { exitCodes } from '../complain.ts'
import { type Line, type Style, styled } from '../line.ts'
import { demandStore, namesStore, reach } from '../reach.ts'

export const migrate = command({
  name: 'migrate',
  summary: 'Create a store, or migrate it to this version.',
  settings: ['database', 'data', 'schema', ...storeSettings],
  async run({ settled }) {
    const { openEngine } = await import('../../engine/engine.ts')
    const { migrate: migrateStore } = await import('../../store/schema/migrate.ts')
    await using engine = await openEngine({ ...storeOf(settled), migrate: false })
    const made = await migrateStore(engine.context.sql)
    const { applied, version } = made
    const words = applied === 0 ? `Up to date at version ${version}.` : `Applied ${applied}; now at version ${version}.`
    return { data: made, show: () => [words] }
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
  async run({ settled }) {
    const found = await examination()
    return { data: found, show: () => linesOf(found), code: found.healthy ? exitCodes.good : exitCodes.bad }

    async function examination(): Promise<Examination> {
      if (!namesStore(settled)) {
        await using reached = await reach(settled)
        return await reached.api.doctor()
      }
      const { openEngine } = await import('../../engine/engine.ts')
      // It must not mend what it is to examine, so it opens the store as it is.
      await using engine = await openEngine({ ...demandStore(settled), migrate: false })
      return await engine.doctor()
    }
  },
})

function linesOf({ store, findings, healthy }: Examination): Line[] {
  return [
    store,
    ...findings.flatMap(({ grade, what, todo }): Line[] => {
      const [mark, style] = marks[grade]
      return [[styled(style, mark), ` ${what}`], `    ${todo}`]
    }),
    healthy ? 'Every rule holds.' : styled('red', 'Something is wrong; see above.'),
  ]
}
