import { command } from '../command.ts'
import { exitCodes } from '../complain.ts'
import { refused } from '../parse.ts'

export const conformance = command({
  name: 'conformance',
  summary: 'Test a worker program against the worker protocol.',
  more: `The program gets PAWL_SERVER, PAWL_KEY and PAWL_QUEUES, and works tasks of the type "conformance":
docs/worker-protocol.md says how. Ends with 1 if it breaks a promise that is required.`,
  flags: {
    worker: { kind: 'text', value: 'COMMAND', summary: 'the shell command that starts the worker' },
    only: { kind: 'list', value: 'CHECK', summary: 'only this check, may be repeated' },
  },
  settings: [],
  async run({ flags, screen, json, untilTold }) {
    const { worker, only } = flags
    if (worker === undefined) throw refused('pawl conformance wants --worker "COMMAND".')
    const { printCheck, printReport, runConformance } = await import('../../conformance/index.ts')
    const report = await runConformance({
      worker,
      ...(only !== undefined && { only }),
      ...(!json && {
        tell: check => {
          for (const line of printCheck(check).split('\n')) screen.say(line)
        },
      }),
      signal: untilTold(),
    })
    return {
      data: report,
      show: () => [printReport(report).trimEnd().split('\n').at(-1)!],
      code: report.passed ? exitCodes.good : exitCodes.bad,
    }
  },
})
