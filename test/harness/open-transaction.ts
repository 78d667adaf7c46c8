import type { Sql } from '../../src/store/sql.ts'

/** A transaction that stays open until it is told to commit. */
export async function openTransaction(sql: Sql): Promise<{ tx: Sql; commit(): Promise<void> }> {
  let end = () => {}
  let done = Promise.resolve()
  const tx = await new Promise<Sql>((begun, failed) => {
    done = sql.begin(async inner => {
      begun(inner)
      await new Promise<void>(ended => (end = ended))
    })
    done.catch(failed)
  })
  return {
    tx,
    async commit() {
      end()
      await done
    },
  }
}
