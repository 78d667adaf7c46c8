import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from '../../protocol/tasks/tasks.ts'
import { allItems, type Paging, wholePage } from './pages.ts'

/** A list of numbers whose pages are cut after `most` items, as the engine cuts pages of large items. */
function list(length: number, most: number) {
  return async ({ limit, cursor, offset = 0 }: Paging): Promise<Page<number>> => {
    const from = cursor === undefined ? offset : Number(cursor)
    const end = Math.min(length, from + Math.min(limit, most))
    const items = Array.from({ length: end - from }, (_, n) => from + n)
    return { items, next: end < length ? String(end) : null, total: length }
  }
}

const upTo = (length: number) => [...Array(length).keys()]

test('a page of large items that is asked for by number is complete', async () => {
  const page = await wholePage(list(30, 4), { limit: 10, offset: 5, total: true })
  assert.deepEqual(page, { items: upTo(15).slice(5), next: '15', total: 30 })
  assert.deepEqual((await wholePage(list(8, 4), { limit: 10, offset: 5 })).items, [5, 6, 7])
})

test('a list that is answered as a whole is read to its end, and refused if it is too large', async () => {
  assert.deepEqual(await allItems(list(40_000, 1000)), upTo(40_000))
  assert.deepEqual(await allItems(list(64, 4)), upTo(64))
  const text = 'x'.repeat(2 ** 20)
  const large = (length: number) => async (paging: Paging) => {
    const page = await list(length, 4)(paging)
    return { ...page, items: page.items.map(() => text) }
  }
  const tooLarge = { code: 'OPTION_INVALID', message: /the answer would have over 64 MiB/ }
  assert.equal((await allItems(large(60))).length, 60)
  await assert.rejects(allItems(large(80)), tooLarge)
  await assert.rejects(wholePage(large(1000), { limit: 1000 }), tooLarge)
  await assert.rejects(allItems(list(20_000, 1000), 10_000), { message: /there are more than 10,000/ })
})
