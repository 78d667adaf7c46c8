import { pawl } from '../engine/engine.ts'
import { migrate } from '../store/migrate.ts'
import type { StoreFlags } from './main.ts'

export async function runMigrate({ json, ...store }: StoreFlags & { json: boolean }): Promise<number> {
  await using engine = await pawl({ ...store, migrate: false })
  const { applied, version } = await migrate(engine.context.sql)
  const said = applied === 0 ? `Up to date at version ${version}.` : `Applied ${applied}; now at version ${version}.`
  process.stdout.write(json ? `${JSON.stringify({ applied, version })}\n` : `${said}\n`)
  return 0
}
