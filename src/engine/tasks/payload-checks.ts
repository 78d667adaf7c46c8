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
import { type PayloadCheck, payloadCheckOf, payloadMeter } from '../../spec/json-schema/evaluate.ts'
import type { Sql } from '../../store/driver/sql.ts'
import {
  type PayloadSchemaRow,
  readPayloadSchemas,
  readPayloadVersions,
  StaleSchemas,
} from '../../store/tasks/payload-schemas.ts'

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

/** Schemas, by type. Types without one are missing. */
type Known = ReadonlyMap<string, KnownSchema>

/** Maximum size of all schemas that are remembered. */
const maxKnownBytes = 64 * 2 ** 20
/** A compiled schema takes about this much memory per step of its check. */
const bytesPerStep = 100
/** A schema is at most 100 kB long. */
const schemasPerRead = 20

/** The payload schemas of the store, as they were when this process last read them. */
export class KnownSchemas {
  /** Begins with the one that was read first. */
  readonly #byType = new Map<string, KnownSchema>()
  readonly #reads = new Map<string, Promise<Known>>()
  #bytes = 0

  /** The known schemas of these tasks' types. */
  of(tasks: NewPayloads['tasks']): Known {
    const found = new Map<string, KnownSchema>()
    if (this.#byType.size === 0) return found
    for (const { type } of tasks) {
      const known = this.#byType.get(type)
      if (known !== undefined) found.set(type, known)
    }
    return found
  }

  /** Returns the current schemas of these types. One that has not changed is not read again. */
  async read(sql: Sql, types: readonly string[]): Promise<Known> {
    const current = new Map<string, KnownSchema>()
    const changed: string[] = []
    const versions = new Map((await readPayloadVersions(sql, types)).map(({ type, version }) => [type, version]))
    for (const type of types) {
      const version = versions.get(type)
      const known = this.#byType.get(type)
      if (version === undefined) this.#forget(type)
      else if (known?.version === version) current.set(type, known)
      else changed.push(type)
    }
    for (let from = 0; from < changed.length; from += schemasPerRead) {
      for (const row of await readPayloadSchemas(sql, changed.slice(from, from + schemasPerRead))) {
        await nextTurn()
        current.set(row.type, this.#compile(row))
      }
    }
    return current
  }

  /** Like `read`, but calls of several requests that arrive during a read share it. It may have begun before them. */
  async readShared(sql: Sql, types: readonly string[]): Promise<Known> {
    // A transaction may have changed schemas that nobody else sees.
    if (sql.isTransaction) return this.read(sql, types)
    const missing = types.filter(type => !this.#reads.has(type))
    if (missing.length > 0) {
      const reading = this.read(sql, missing).finally(() => {
        for (const type of missing) this.#reads.delete(type)
      })
      for (const type of missing) this.#reads.set(type, reading)
    }
    const found = await Promise.all(new Set(types.map(type => this.#reads.get(type)!)))
    return new Map(found.flatMap(known => [...known]))
  }

  #compile({ type, schema, version, length }: PayloadSchemaRow): KnownSchema {
    const earlier = this.#byType.get(type)
    if (earlier?.version === version) return earlier
    const meter = payloadMeter()
    const check = payloadCheckOf(schema, meter)
    const known = { version, check, bytes: length + bytesPerStep * (meter.total - meter.left) }
    this.#forget(type)
    this.#byType.set(type, known)
    this.#bytes += known.bytes
    for (const oldest of this.#byType.keys()) {
      if (this.#bytes <= maxKnownBytes || oldest === type) break
      this.#forget(oldest)
    }
    return known
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
  // A schema that this call has read counts for it, even if the schema is forgotten meanwhile.
  let known = schemas.of(payloads.tasks)
  for (let tries = 1; ; tries++) {
    known = await checkAgainstStore(schemas, sql, payloads, known)
    try {
      return await insert(new Map([...known].map(([type, { version }]) => [type, version])))
    } catch (error) {
      if (!(error instanceof StaleSchemas)) throw error
      if (tries === maxTries) throw new Problem('STORE_BUSY', { why: error.message }, error)
      const stale = new Set(error.types)
      const others = [...known].filter(([type]) => !stale.has(type))
      known = new Map([...others, ...(await schemas.readShared(sql, error.types))])
    }
  }
}

/** Checks payloads against the current schemas of the store, before a write of several transactions begins. */
export async function checkBeforehand(schemas: KnownSchemas, sql: Sql, payloads: NewPayloads): Promise<void> {
  const known = await schemas.read(sql, [...new Set(payloads.tasks.map(({ type }) => type))])
  const refused = await firstRefused(known, payloads)
  if (refused !== undefined) throw refused
}

/** Returns the schemas that the payloads match. Throws the problem of the first that does not match. */
async function checkAgainstStore(schemas: KnownSchemas, sql: Sql, payloads: NewPayloads, known: Known): Promise<Known> {
  if ((await firstRefused(known, payloads)) === undefined) return known
  // The schema may have been replaced by one that accepts the payload.
  const current = await schemas.read(sql, [...known.keys()])
  const refused = await firstRefused(current, payloads)
  if (refused !== undefined) throw refused
  return current
}

/** About 20 milliseconds. */
const stepsPerTurn = 200_000

/** Other work of this process goes on between the payloads. */
async function firstRefused(known: Known, { tasks, at }: NewPayloads): Promise<Problem | undefined> {
  if (known.size === 0) return undefined
  let steps = 0
  for (const [index, { type, payload }] of tasks.entries()) {
    const check = known.get(type)?.check
    if (check === undefined) continue
    const meter = payloadMeter()
    const issues = check(JSON.parse(payload), meter)
    if (issues.length > 0) return new Problem('PAYLOAD_REFUSED', { at: at(index), type, issues })
    steps += meter.total - meter.left
    if (steps < stepsPerTurn) continue
    steps = 0
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
