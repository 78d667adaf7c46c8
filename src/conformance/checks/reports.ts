/** Reports: sent until they are answered, and then no more, whatever the network does. */
import { isDeepStrictEqual } from 'node:util'
import { type Check, expect } from '../check.ts'
import type { Exchange } from '../proxy.ts'
import { expectOneRun, type Rig } from '../rig.ts'
import { expectNext } from './outcomes.ts'

const lostAnswer: Check = {
  id: 'lost-answer',
  title: 'resends a report whose answer was lost, and does not run the task again',
  level: 'required',
  async run(rig) {
    const id = await rig.enqueue({ do: 'succeed', output: 'sent twice' })
    let isLost = false
    rig.proxy.interfere({
      async after({ sync }) {
        if (isLost || !sync.settled?.some(item => item.id === id)) return 'pass'
        isLost = true
        return 'swallow'
      },
    })
    rig.start()
    const epoch = await rig.begun(id)
    const reports = await rig.until('the report was sent again and answered', 15, () => {
      const sent = rig.proxy.reports({ id, epoch })
      return sent.length > 1 && sent.at(-1)!.exchange.heardAt !== undefined && sent
    })
    expectSameReport(reports)
    expectOneRun(rig, id)
    const { state } = await rig.engine.task(id)
    expect(state === 'succeeded', `the task is ${state}`)
    await expectNext(rig)
    expectOneRun(rig, id)
    return `the same report was sent ${reports.length} times, and counted once`
  },
}

const oneReport: Check = {
  id: 'one-report',
  title: 'reports one outcome per lease, and never changes it',
  level: 'required',
  async run(rig) {
    const ids = [
      await rig.enqueue({ do: 'succeed', output: 1 }),
      await rig.enqueue({ do: 'fail', times: 1 }),
      await rig.enqueue({ do: 'giveUp' }),
    ]
    rig.start()
    for (const id of ids) await rig.ended(id, 20)
    await rig.pause(2)
    for (const id of ids) {
      const { epoch: last } = await rig.engine.task(id)
      for (let epoch = 1; epoch <= last; epoch++) expectOneReport(rig, id, epoch)
    }
    return 'sent one report per lease'
  },
}

function expectOneReport({ proxy }: Rig, id: string, epoch: number): void {
  const reports = proxy.reports({ id, epoch })
  expectSameReport(reports)
  const firstHeardAt = reports.find(({ exchange }) => exchange.heardAt !== undefined)?.exchange.heardAt
  const late = reports.filter(({ exchange }) => exchange.sentAt > (firstHeardAt ?? Infinity))
  expect(late.length === 0, `it sent a report again (${late.length}) after it had been answered`)
}

function expectSameReport(reports: ReturnType<Rig['proxy']['reports']>): void {
  const [first, ...others] = reports.map(({ settled: { outcome, output } }) => ({ outcome, output }))
  const other = others.find(report => !isDeepStrictEqual(report, first))
  expect(
    other === undefined,
    `under one lease it reported ${first?.outcome}, and then something else: ${other?.outcome}`,
  )
}

const serverAway: Check = {
  id: 'server-away',
  title: 'reconnects after an outage of the server, and reports the tasks that it finished meanwhile',
  level: 'required',
  async run(rig) {
    const id = await rig.enqueue(
      { do: 'sleep', seconds: 1, output: 'kept' },
      { leaseSeconds: 60, heartbeatSeconds: null },
    )
    rig.start()
    const epoch = await rig.begun(id)
    rig.proxy.cut()
    await rig.until('the handler went on without the server', 15, () => rig.journal.ended(id).includes(epoch))
    await rig.pause(2)
    rig.proxy.interfere({ before: async () => 'unavailable' })
    rig.proxy.mend()
    await rig.pause(2)
    rig.proxy.interfere({})
    const task = await rig.ended(id, 25)
    expect(task.state === 'succeeded' && task.output === 'kept', `the task that it had finished is ${task.state}`)
    expectOneRun(rig, id)
    await expectNext(rig)
    return 'after 2 s without connections and 2 s of 503, it reported, and completed the next task'
  },
}

const session: Check = {
  id: 'session',
  title: 'claims with a session and a syncId, so that it still gets its tasks if an answer is lost',
  level: 'advised',
  async run(rig) {
    const id = await rig.enqueue({ do: 'succeed' })
    let lost: Exchange | undefined
    rig.proxy.interfere({
      async after(exchange) {
        if (lost !== undefined || !exchange.answer?.claimed.some(task => task.id === id)) return 'pass'
        lost = exchange
        return 'swallow'
      },
    })
    rig.start()
    await rig.until('the task was claimed, and the answer was lost', 15, () => lost !== undefined)
    const { session, syncId } = lost!.sync
    expect(session !== undefined && syncId !== undefined, 'it claims without a session or without a syncId')
    const epoch = await rig.begun(id, 12)
    expect(epoch === 1, `it got the task only in a later epoch: ${epoch}`)
    await rig.ended(id)
    return 'repeated the claim with the same syncId, and got the same lease'
  },
}

export const reportChecks = [serverAway, lostAnswer, oneReport, session]
