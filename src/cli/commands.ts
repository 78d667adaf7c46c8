/** Every command of the CLI, in the order of the help. */
import type { Command } from './command.ts'
import { up } from './up.ts'

export const commands: readonly Command[] = [up]
