/** Reads one entity in all vocabularies at once, and compares their words with the tables and with Pawl's own state. */
import assert from 'node:assert/strict'
import { inWords, wordsOf } from '../../src/dialects/vocabulary.ts'
import { type DialectName, dialectNames } from '../../src/protocol/dialects.ts'
import type { Served } from '../harness/served.ts'
import { type Entity, type Seen, wordsFor } from './words-of-seeds.ts'

/**
 * One way to read an entity: its path, and its state in the answer. Without a path: Pawl's own view with the dialect's
 * words.
 */
interface Reading {
  readonly dialect: DialectName
  readonly entity: Entity
  readonly path?: (id: string) => string
  stateIn(answer: Record<string, unknown>): unknown
}

const reading = (
  dialect: DialectName,
  entity: Entity,
  path: (id: string) => string,
  stateIn: Reading['stateIn'],
): Reading => {
  return { dialect, entity, path, stateIn }
}
const entities: readonly Entity[] = ['job', 'stage', 'task']

/** Pawl's views with the words of each dialect, and the dialects' own routes where they have one for the entity. */
const readings: readonly Reading[] = [
  ...dialectNames.flatMap(name =>
    entities.map((entity): Reading => ({ dialect: name, entity, stateIn: ({ state }) => state })),
  ),
  reading(
    'jsm',
    'task',
    id => `/dialects/jsm/jobs/${id}`,
    ({ state }) => state,
  ),
  ...entities.map(entity =>
    reading(
      'jobnik',
      entity,
      id => `/dialects/jobnik/v1/${entity}s/${id}`,
      ({ status }) => status,
    ),
  ),
  reading(
    'marie',
    'task',
    id => `/dialects/marie/api/jobs/${id}`,
    ({ result }) => (result as { state: string }).state,
  ),
  reading(
    'pipeline',
    'job',
    id => `/dialects/pipeline/v1/pipeline/jobs/${id}`,
    ({ status }) => status,
  ),
  // Falconeri's own routes show only what has a pipeline spec.
]

export interface Watch {
  /** Reads one entity in every way, and its own state before and after. */
  at(entity: Entity, id: string): Promise<void>
  /** Reads every entity with new events in the feed. */
  follow(): Promise<void>
  /** The Pawl states that were seen, such as `task running`. */
  readonly states: ReadonlySet<string>
  /** The events of the feed, as `entity id seq`. */
  readonly seenEvents: ReadonlySet<string>
}

export async function watch({ engine, request }: Served): Promise<Watch> {
  const states = new Set<string>()
  const seenEvents = new Set<string>()
  let { next: cursor } = await engine.events({ latest: 0 })
  const own = { job: engine.job, stage: engine.stage, task: engine.task } as Record<
    Entity,
    (id: string) => Promise<Seen>
  >
  const answered = async ({ path, entity, dialect }: Reading, id: string) => {
    const answer =
      path === undefined
        ? inWords(entity, await own[entity](id), wordsOf[dialect], await engine.internals.clock())
        : await (await request(path(id))).json()
    return answer as Record<string, unknown>
  }

  async function at(entity: Entity, id: string): Promise<void> {
    const mine = readings.filter(one => one.entity === entity)
    for (;;) {
      const [from, before] = [await engine.internals.clock(), await own[entity](id)]
      const answers = await Promise.all(mine.map(one => answered(one, id)))
      const [after, to] = [await own[entity](id), await engine.internals.clock()]
      // The entity moved in between, so the words of both states are right.
      if (after.seq !== before.seq) continue
      for (const [index, { dialect, stateIn }] of mine.entries()) {
        const word = stateIn(answers[index]!)
        const right = wordsFor(dialect, entity, after, [from, to])
        assert.ok(right.includes(word as string), `${dialect} says ${word} of a ${entity} that is ${after.state}`)
      }
      states.add(`${entity} ${after.state}`)
      return
    }
  }

  async function follow(): Promise<void> {
    for (let more = true; more; ) {
      const page = await engine.events({ cursor })
      cursor = page.next
      more = page.more
      for (const { entity, entityId, seq } of page.items) {
        if (entity !== 'artifact') await at(entity, entityId)
        seenEvents.add(`${entity} ${entityId} ${seq}`)
      }
    }
  }
  return { at, states, seenEvents, follow: inTurn(follow) }
}

/** Calls run one after the other, because they share one cursor. */
function inTurn(work: () => Promise<void>): () => Promise<void> {
  let before = Promise.resolve()
  return () => {
    before = before.then(work)
    return before
  }
}
