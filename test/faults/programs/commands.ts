/** Starts and ends commands without a pause, so that a kill can hit any moment in the life of one. */
import { startGroup } from '../../../src/commands/process-group.ts'

export interface CommandsProgram {
  readonly command: readonly string[]
}

const { command }: CommandsProgram = JSON.parse(process.argv[2]!)
const mostAtOnce = 20

const running: ReturnType<typeof startGroup>[] = []
for (;;) {
  const group = startGroup(command, { cwd: '/', env: { PATH: process.env.PATH ?? '' } })
  running.push(group)
  if (running.length === 1) group.stdout.once('data', () => console.log('running'))
  if (running.length > mostAtOnce) await running.shift()!.end()
  await new Promise(setImmediate)
}
