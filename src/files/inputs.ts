import type { DatumInput, InputPlan } from '../kernel/datum.ts'
import type { FileStore } from './file-store.ts'
export interface Datum {
  readonly inputs: readonly DatumInput[]
  readonly position: unknown
}
export interface Lister {
  readonly uri: string
  readonly list: FileStore['list']
}
export async function* datumsOf(
  plan: InputPlan,
  listerOf: (leaf: Extract<InputPlan, { kind: 'files' }>) => Lister,
  after?: unknown,
): AsyncGenerator<Datum> {
  if (plan.kind !== 'files') throw new Error('stub')
  const lister = listerOf(plan)
  for await (const page of lister.list(lister.uri, after === undefined ? {} : { after: after as string })) {
    for (const { path, size, version } of page)
      yield {
        inputs: [
          {
            name: plan.name,
            uri: lister.uri + path,
            path,
            ...(size !== undefined && { size }),
            ...(version !== undefined && { version }),
          },
        ],
        position: path,
      }
  }
}
