import type pg from 'pg'

/** The types of a statement's parameters and columns. Types are OIDs. */
export interface Description {
  readonly parameters: readonly number[]
  /** Undefined: the statement returns no rows. */
  readonly columns?: readonly { readonly name: string; readonly type: number }[]
}

/** The part of a connection of `pg` that a query object of our own uses. */
interface Wire {
  once(event: 'parameterDescription', listener: (answer: { dataTypeIDs: number[] }) => void): void
  parse(statement: { name: string; text: string; types: number[] }): void
  describe(of: { type: 'S'; name: string }): void
  sync(): void
}

/** Asks the server for the types of a statement without running it. */
export function describeStatement(client: pg.ClientBase, text: string): Promise<Description> {
  return new Promise((resolve, reject) => {
    let parameters: readonly number[] = []
    let columns: Description['columns']
    const request = {
      submit(wire: Wire) {
        wire.once('parameterDescription', ({ dataTypeIDs }) => {
          parameters = dataTypeIDs
        })
        wire.parse({ name: '', text, types: [] })
        wire.describe({ type: 'S', name: '' })
        wire.sync()
      },
      handleRowDescription({ fields }: { fields: readonly { name: string; dataTypeID: number }[] }) {
        columns = fields.map(({ name, dataTypeID }) => ({ name, type: dataTypeID }))
      },
      handleReadyForQuery: () => resolve({ parameters, ...(columns && { columns }) }),
      handleError: reject,
    }
    // The types of pg know no query object that has no events.
    client.query(request as unknown as pg.Submittable)
  })
}

/** The names of types, as they can be written in a cast. */
export async function typeNames(client: pg.ClientBase, types: readonly number[]): Promise<Map<number, string>> {
  const { rows } = await client.query<{ type: number; name: string }>(
    'select type, format_type(type, null) as name from unnest($1::oid[]) as type',
    [types],
  )
  return new Map(rows.map(({ type, name }) => [type, name]))
}
