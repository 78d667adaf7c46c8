#!/usr/bin/env node
import { parseArgs } from 'node:util'
import { Problem } from '../kernel/problem.ts'
import { nearest } from '../kernel/suggest.ts'
import { runDemo } from './demo.ts'
import { runDoctor } from './doctor.ts'
import { runMigrate } from './migrate.ts'

/** A command of the CLI: what it says of itself, and what it does. It answers with an exit code. */
export interface Command {
  readonly summary: string
  run(where: StoreFlags & { json: boolean }): Promise<number>
}

export interface StoreFlags {
  readonly database?: string
  readonly folder?: string
}

const commands: Record<string, Command> = {
  demo: { summary: 'Queue, work, retry and set aside a few tasks, and show what was written down.', run: runDemo },
  doctor: {
    summary: 'Examine a store: broken rules, pinned snapshots, bloat, clock skew, schema drift.',
    run: runDoctor,
  },
  migrate: { summary: 'Bring a store up to this version.', run: runMigrate },
}

const help = `pawl: a durable job engine

${Object.entries(commands)
  .map(([name, { summary }]) => `  pawl ${name.padEnd(9)} ${summary}`)
  .join('\n')}

  --database URL    a PostgreSQL server (or DATABASE_URL); default: the embedded store
  --data FOLDER     where the embedded store keeps its data (or PAWL_DATA); default: in memory
  --json            print JSON
`

/** 0: good. 1: something is bad. 2: the call makes no sense. 3: the store cannot be reached. */
async function main(): Promise<number> {
  let called: ReturnType<typeof read>
  try {
    called = read()
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${help}`)
    return 2
  }
  const { values, positionals } = called
  const [name] = positionals
  if (values.help || name === undefined) {
    process.stdout.write(help)
    return values.help ? 0 : 2
  }
  const command = commands[name]
  if (command === undefined) {
    const meant = nearest(name, Object.keys(commands))
    process.stderr.write(`There is no command "${name}".${meant ? ` Did you mean "${meant}"?` : ''}\n\n${help}`)
    return 2
  }
  const database = values.database ?? process.env.DATABASE_URL
  const folder = values.data ?? process.env.PAWL_DATA
  try {
    return await command.run({ ...(database && { database }), ...(folder && { folder }), json: values.json })
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    process.stderr.write(`${error.code}: ${error.message}\n`)
    return error.code === 'STORE_UNAVAILABLE' ? 3 : 1
  }
}

function read() {
  return parseArgs({
    allowPositionals: true,
    options: {
      database: { type: 'string' },
      data: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
}

process.exitCode = await main()
