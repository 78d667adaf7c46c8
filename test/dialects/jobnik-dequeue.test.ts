/** The order in which tasks are dequeued. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { begin, jobnikServed, oneStage, someType } from './jobnik-in.ts'

test('of many who dequeue at once no two get the same task, and nobody goes away empty while there is one', async t => {
  const { jobnik } = await jobnikServed(t)
  const crowd = 8
  for (let round = 0; round < 5; round++) {
    const { type, tasks } = await oneStage(
      jobnik,
      Array.from({ length: crowd }, () => ({ data: {} })),
    )
    const won = await Promise.all(Array.from({ length: crowd }, () => jobnik.dequeue(type)))
    assert.deepEqual(won.map(task => task?.id).sort(), tasks.map(({ id }) => id).sort())
    assert.equal(await jobnik.dequeue(type), null)
  }
})

test('the highest priority goes first, then the oldest; a priority that is changed counts at once', async t => {
  const { jobnik } = await jobnikServed(t)
  const type = someType()
  const make = async (priority: string) => {
    const { id } = await jobnik.createJob({ priority })
    const stage = await jobnik.createStage(id, type)
    await jobnik.createTasks(stage.id, [{ data: { id } }])
    return id
  }
  const ids: Record<string, string> = {}
  for (const priority of ['LOW', 'MEDIUM', 'VERY_LOW', 'VERY_HIGH', 'HIGH']) ids[priority] = await make(priority)
  const [second, raised] = [await make('MEDIUM'), await make('VERY_LOW')]
  await jobnik.ask('PATCH', `/v1/jobs/${raised}/priority`, { priority: 'VERY_HIGH' })
  const order: unknown[] = []
  for (let n = 0; n < 7; n++) order.push((await begin(jobnik, type)).data.id)
  const { VERY_HIGH, HIGH, MEDIUM, LOW, VERY_LOW } = ids
  assert.deepEqual(order, [VERY_HIGH, raised, HIGH, MEDIUM, second, LOW, VERY_LOW])
})

test('a type of stage may hold any characters, and only its own tasks are dequeued', async t => {
  const { jobnik } = await jobnikServed(t)
  const types = ['a/b', 'größer als', 'x?y=z&w#1', '%41', 'command', '日本', "o'neill", 'x'.repeat(50), '本'.repeat(50)]
  for (const type of types) {
    const { id } = await jobnik.createJob()
    const stage = await jobnik.createStage(id, type)
    assert.equal(stage.type, type)
    await jobnik.createTasks(stage.id, [{ data: { type } }])
  }
  for (const type of types.toReversed()) {
    assert.equal((await begin(jobnik, type)).data.type, type)
    assert.equal(await jobnik.dequeue(type), null)
  }
})

test('an empty queue, and a type that nobody has heard of, are 404 TASK_NOT_FOUND', async t => {
  const { jobnik } = await jobnikServed(t)
  const { status, body } = await jobnik.ask('PATCH', `/v1/stages/${someType()}/tasks/dequeue`)
  assert.deepEqual([status, body], [404, { message: 'TASK_NOT_FOUND', code: 'TASK_NOT_FOUND' }])
  const long = await jobnik.ask('PATCH', `/v1/stages/${'x'.repeat(51)}/tasks/dequeue`)
  assert.deepEqual([long.status, long.body.code], [400, 'VALIDATION_ERROR'])
})

test('two reports of one task at once: one counts, and the task has one end', async t => {
  const { jobnik, engine } = await jobnikServed(t)
  for (let round = 0; round < 5; round++) {
    const { type } = await oneStage(jobnik)
    const { id } = await begin(jobnik, type)
    const answers = await Promise.all(['COMPLETED', 'FAILED', 'COMPLETED', 'FAILED'].map(to => jobnik.report(id, to)))
    const end = (await jobnik.task(id)).status
    for (const { status, body } of answers) {
      if (status === 200) assert.equal(body.status, end)
      else assert.ok(['ILLEGAL_TASK_STATUS_TRANSITION', 'TASK_STATUS_UPDATE_FAILED'].includes(body.code), body.code)
    }
    assert.ok(answers.some(({ status }) => status === 200))
    const ends = (await engine.taskEvents(id)).items.filter(({ type: word }) =>
      ['task.succeeded', 'task.failed'].includes(word),
    )
    assert.equal(ends.length, 1)
  }
})
