/** Is killed, with its other guard, in the moment in which it has started a new guard and has not written to it yet. */
import childProcess, { type ChildProcess } from 'node:child_process'
import { syncBuiltinESMExports } from 'node:module'
import { guardGroup } from '../../../src/commands/guard.ts'

const guards: ChildProcess[] = []
const spawn = childProcess.spawn as (...args: unknown[]) => ChildProcess
const spawnGuard = (...args: unknown[]): ChildProcess => {
  const guard = spawn(...args)
  if (guards.push(guard) <= 2) return guard
  guards[1]!.kill('SIGKILL')
  process.kill(process.pid, 'SIGKILL')
  return guard
}

const command = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' })
Object.assign(childProcess, { spawn: spawnGuard })
syncBuiltinESMExports()
await guardGroup(command.pid!).known
console.log(command.pid)
guards[0]!.kill('SIGKILL')
