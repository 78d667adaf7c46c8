/**
 * Random commands by several workers, on a real PostgreSQL, with the pure kernel as the oracle.
 *
 * A failed run prints its seed and path. PAWL_TEST_PATH with that seed repeats the failed story alone.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { seed } from '../harness/dice.ts'
import { type Command, command } from './commands.ts'
import { shorten } from './shorten.ts'
import { step } from './steps.ts'
import { compareHistories, compareRows, inWorld } from './world.ts'

const runs = 50
const commands = 60
const path = process.env.PAWL_TEST_PATH

test('whatever workers and operators do, the database does what the kernel decides', async t => {
  // Jitter is the only random part. With a fixed number, a run can be repeated exactly.
  t.mock.method(Math, 'random', () => 0.25)

  const stories = fc.array(command, { minLength: commands, maxLength: commands })
  let first: unknown
  const holds = fc.asyncProperty(stories, async story => {
    const fault = await faultOf(story)
    first ??= fault?.error
    return fault === undefined
  })
  const options = { seed, numRuns: runs, unbiased: true, endOnFailure: true, ...(path !== undefined && { path }) }
  const { failed, counterexample, counterexamplePath } = await fc.check(holds, options)
  if (!failed) return
  const replay = `repeat with PAWL_TEST_PATH=${counterexamplePath} and --seed ${seed}`
  console.error(replay)
  const shortest = await shorten(counterexample![0], async story => (await faultOf(story))?.ran, 60)
  const lines = shortest.map(command => JSON.stringify(command))
  assert.fail(new Error([replay, ...lines].join('\n'), { cause: (await faultOf(shortest))?.error ?? first }))
})

/** Runs a story. If engine and model disagree, returns the error and the number of commands that had run. */
async function faultOf(story: readonly Command[]): Promise<{ ran: number; error: unknown } | undefined> {
  let ran = 0
  try {
    await inWorld(async world => {
      for (const command of story) {
        ran += 1
        await step(world, command)
        await compareRows(world)
      }
      await compareHistories(world)
    })
    return undefined
  } catch (error) {
    return { ran, error }
  }
}
