/** The schemas of task types count in every dialect: a payload that they refuse is a 400 and is not queued. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { served } from '../harness/served.ts'

const payloadSchema = { type: 'object', properties: { width: { type: 'number' } }, required: ['width'] }
const bad = { width: 'wide' }

type Send = (path: string, json: unknown) => Promise<Response>

const requests: Readonly<Record<string, (send: Send) => Promise<Response>>> = {
  jsm: send => send('/dialects/jsm/jobs', { type: 'resize', payload: bad }),
  jobnik: async send => {
    const job = (await (await send('/dialects/jobnik/v1/jobs', { name: 'images', data: {} })).json()) as { id: string }
    const stage = await send(`/dialects/jobnik/v1/jobs/${job.id}/stage`, { type: 'resize', data: {} })
    const { id } = (await stage.json()) as { id: string }
    return send(`/dialects/jobnik/v1/stages/${id}/tasks`, [{ data: bad }])
  },
  marie: send => send('/dialects/marie/api/v1/invoke', { name: 'resize', data: bad }),
}

for (const [dialect, request] of Object.entries(requests)) {
  test(`${dialect}: a payload that the schema of its type refuses is 400, names the field and is not queued`, async t => {
    const run = await served(t)
    await run.engine.putTaskType('resize', { payloadSchema })
    const answer = await request((path, json) => run.request(path, { method: 'POST', json }))
    const text = await answer.text()
    assert.equal(answer.status, 400, text)
    assert.match(text, /does not match the schema of its task type.*width/)
    assert.deepEqual((await run.engine.tasks()).items, [])
  })
}
