/**
 * Checks payloads before they are queued: against the schema that this process has registered for their type, and
 * against the JSON Schema that the store has for it.
 *
 * Schemas of the store are remembered, and no statement asks whether they are current. A payload is accepted by the
 * statement that inserts it, which names the version it was checked against (store/tasks/payload-schemas.ts). It is
 * refused only by a schema that was read after the request arrived. A type without a schema therefore costs nothing.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Problem } from '../../kernel/problem.ts'
import { checkPayload, type TaskDefinition } from '../../protocol/tasks/new-task.ts'
import { type PayloadCheck, payloadCheckOf, payloadMeter, stepsForPayloads } from '../../spec/json-schema/evaluate.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { readPayloadSchemas, StaleSchemas } from '../../store/tasks/payload-schemas.ts'

/** Payloads that are to be queued. */
export interface NewPayloads {
  /** Payloads are JSON text. */
  readonly tasks: readonly { readonly type: string; readonly payload: string }[]
  /** The place of a payload in the request. */
  at(index: number): string
}

interface KnownSchema {
  readonly version: string
  readonly check: PayloadCheck
  /** Approximate size in memory. */
  readonly bytes: number
}

/** Maximum size of all known schemas. */
const maxKnownBytes = 64 * 2 ** 20
/** A compiled schema takes about this much memory per step of its check. */
const bytesPerStep = 100

/** The payload schemas of the store, as they were when this process last read them. */
export class KnownSchemas {
  readonly #byType = new Map<string, KnownSchema>()
  #bytes = 0

  /** The known schemas of these tasks' types. */
  of(tasks: NewPayloads['tasks']): ReadonlyMap<string, KnownSchema> {
    const found = new Map<string, KnownSchema>()
    if (this.#byType.size === 0) return found
    for (const { type } of tasks) {
      const known = this.#byType.get(type)
      if (known !== undefined) found.set(type, known)
    }
    return found
  }

  async read(sql: Sql, types: readonly string[]): Promise<void> {
    const rows = await readPayloadSchemas(sql, types)
    for (const type of types) this.#forget(type)
    for (const { type, schema, version, length } of rows) {
      const meter = payloadMeter()
      const check = payloadCheckOf(schema, meter)
      const bytes = length + bytesPerStep * (meter.total - meter.left)
      if (this.#bytes + bytes > maxKnownBytes) for (const known of this.#byType.keys()) this.#forget(known)
      this.#byType.set(type, { version, check, bytes })
      this.#bytes += bytes
    }
  }

  #forget(type: string): void {
    this.#bytes -= this.#byType.get(type)?.bytes ?? 0
    this.#byType.delete(type)
  }
}

const maxTries = 10

/**
 * Checks payloads against the schemas of the store and inserts them with the versions of these schemas. If a schema has
 * changed, the payloads are checked again. `insert` writes all of them, or none and throws `StaleSchemas`.
 */
export async function insertChecked<Result>(
  schemas: KnownSchemas,
  sql: Sql,
  payloads: NewPayloads,
  insert: (versions: ReadonlyMap<string, string>) => Promise<Result>,
): Promise<Result> {
  for (let tries = 1; ; tries++) {
    const versions = await checkAgainstStore(schemas, sql, payloads)
    try {
      return await insert(versions)
    } catch (error) {
      if (!(error instanceof StaleSchemas) || tries === maxTries) throw error
      await schemas.read(sql, error.types)
    }
  }
}

/** Checks payloads against the current schemas of the store, before a write of several transactions begins. */
export async function checkBeforehand(schemas: KnownSchemas, sql: Sql, payloads: NewPayloads): Promise<void> {
  await schemas.read(sql, [...new Set(payloads.tasks.map(({ type }) => type))])
  await checkAgainstStore(schemas, sql, payloads)
}

/** Returns the versions of the schemas that the payloads match. Throws the problem of the first that does not match. */
async function checkAgainstStore(
  schemas: KnownSchemas,
  sql: Sql,
  payloads: NewPayloads,
): Promise<ReadonlyMap<string, string>> {
  let known = schemas.of(payloads.tasks)
  if ((await firstRefused(known, payloads)) !== undefined) {
    // The schema may have been replaced by one that accepts the payload.
    await schemas.read(sql, [...known.keys()])
    known = schemas.of(payloads.tasks)
    const refused = await firstRefused(known, payloads)
    if (refused !== undefined) throw refused
  }
  return new Map([...known].map(([type, { version }]) => [type, version]))
}

/** About 20 milliseconds. */
const stepsPerTurn = 200_000

/** Other work of this process goes on between the payloads. */
async function firstRefused(
  known: ReadonlyMap<string, KnownSchema>,
  { tasks, at }: NewPayloads,
): Promise<Problem | undefined> {
  if (known.size === 0) return undefined
  let left = stepsForPayloads(tasks.length)
  let pausedAt = left
  for (const [index, { type, payload }] of tasks.entries()) {
    const check = known.get(type)?.check
    if (check === undefined) continue
    const meter = payloadMeter(left)
    const issues = check(JSON.parse(payload), meter)
    if (issues.length > 0) return new Problem('PAYLOAD_REFUSED', { at: at(index), type, issues })
    left -= meter.total - meter.left
    if (pausedAt - left < stepsPerTurn) continue
    pausedAt = left
    await nextTurn()
  }
  return undefined
}

/** Checks payloads against the schemas that this process has registered for their types. */
export async function checkRegistered(
  registered: ReadonlyMap<string, TaskDefinition>,
  { tasks, at }: NewPayloads,
): Promise<void> {
  if (registered.size === 0) return
  for (const [index, { type, payload }] of tasks.entries()) {
    const definition = registered.get(type)
    // The handler gets the payload as it comes back from the store: a Date is a string there.
    if (definition?.schema !== undefined) await checkPayload(definition, JSON.parse(payload), at(index))
  }
}
