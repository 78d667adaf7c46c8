import { printCheck, printReport } from '../../conformance/check.ts'
import { command } from '../command.ts'
import { exitCodes } from '../error-message.ts'
import { invalidCommand } from '../parse.ts'

export const conformance = command({
  name: 'conformance',
  summary: 'Test a worker program against the worker protocol.',
  details: `The program gets PAWL_SERVER, PAWL_KEY and PAWL_QUEUES, and runs tasks of the type "conformance" as described in
docs/worker-protocol.md. The exit code is 1 if a required check fails.`,
  flags: {
    worker: { kind: 'text', value: 'COMMAND', summary: 'the shell command that starts the worker' },
    only: { kind: 'list', value: 'CHECK', summary: 'only this check, may be repeated' },
  },
  settings: [],
  async run({ flags, output, json, stopSignal }) {
    const { worker, only } = flags
    if (worker === undefined) throw invalidCommand('pawl conformance requires --worker "COMMAND".')
    const { runConformance } = await import('../../conformance/run.ts')
    const report = await runConformance({
      worker,
      ...(only !== undefined && { only }),
      ...(!json && {
        onCheck: check => {
          for (const line of printCheck(check).split('\n')) output.print(line)
        },
      }),
      signal: stopSignal(),
    })
    return {
      data: report,
      show: () => [printReport(report).trimEnd().split('\n').at(-1)!],
      code: report.passed ? exitCodes.good : exitCodes.bad,
    }
  },
})
