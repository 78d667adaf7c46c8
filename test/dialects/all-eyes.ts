/** Looking at one entity through all vocabularies at once, and holding what they say against the tables and our own state. */
import assert from 'node:assert/strict'
import { inWords, wordsOf } from '../../src/dialects/vocabulary.ts'
import { type DialectName, dialectNames } from '../../src/protocol/dialects.ts'
import type { Served } from '../harness/served.ts'
import { type Entity, type Seen, wordsFor } from './words-of-seeds.ts'

/** One way to look at an entity: where, and what of the answer is its state. Without a path: our own view in its words. */
interface Look {
  readonly dialect: DialectName
  readonly entity: Entity
  readonly path?: (id: string) => string
  said(answer: Record<string, unknown>): unknown
}

const look = (dialect: DialectName, entity: Entity, path: (id: string) => string, said: Look['said']): Look => {
  return { dialect, entity, path, said }
}
const entities: readonly Entity[] = ['job', 'stage', 'task']

/** Our own views in each one's words, and each one's own routes, where it has one that fits. */
const looks: readonly Look[] = [
  ...dialectNames.flatMap(name =>
    entities.map((entity): Look => ({ dialect: name, entity, said: ({ state }) => state })),
  ),
  look(
    'jsm',
    'task',
    id => `/dialects/jsm/jobs/${id}`,
    ({ state }) => state,
  ),
  ...entities.map(entity =>
    look(
      'jobnik',
      entity,
      id => `/dialects/jobnik/v1/${entity}s/${id}`,
      ({ status }) => status,
    ),
  ),
  look(
    'marie',
    'task',
    id => `/dialects/marie/api/jobs/${id}`,
    ({ result }) => (result as { state: string }).state,
  ),
  look(
    'pipeline',
    'job',
    id => `/dialects/pipeline/v1/pipeline/jobs/${id}`,
    ({ status }) => status,
  ),
  // Falconeri's own routes show only what has a pipeline spec.
]

export interface Watch {
  /** Looks at one entity through every look, and at its own state before and after. */
  at(entity: Entity, id: string): Promise<void>
  /** Looks at all that the feed tells of and has not told before. */
  follow(): Promise<void>
  /** The states of ours that were looked at, as `task running`. */
  readonly states: ReadonlySet<string>
  /** Events that the feed told of, as `entity id seq`. */
  readonly told: ReadonlySet<string>
}

export async function watch({ engine, request }: Served): Promise<Watch> {
  const states = new Set<string>()
  const told = new Set<string>()
  let { next: cursor } = await engine.events({ latest: 0 })
  const own = { job: engine.job, stage: engine.stage, task: engine.task } as Record<
    Entity,
    (id: string) => Promise<Seen>
  >
  const answered = async ({ path, entity, dialect }: Look, id: string) => {
    const answer =
      path === undefined
        ? inWords(entity, await own[entity](id), wordsOf[dialect], await engine.clock())
        : await (await request(path(id))).json()
    return answer as Record<string, unknown>
  }

  async function at(entity: Entity, id: string): Promise<void> {
    const mine = looks.filter(one => one.entity === entity)
    for (;;) {
      const [from, before] = [await engine.clock(), await own[entity](id)]
      const answers = await Promise.all(mine.map(one => answered(one, id)))
      const [after, to] = [await own[entity](id), await engine.clock()]
      // It moved meanwhile: what was seen may be of either.
      if (after.seq !== before.seq) continue
      for (const [index, { dialect, said }] of mine.entries()) {
        const word = said(answers[index]!)
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
        told.add(`${entity} ${entityId} ${seq}`)
      }
    }
  }
  return { at, states, told, follow: inTurn(follow) }
}

/** Whoever calls waits for those before; the cursor is one. */
function inTurn(work: () => Promise<void>): () => Promise<void> {
  let before = Promise.resolve()
  return () => {
    before = before.then(work)
    return before
  }
}
