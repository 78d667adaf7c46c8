/** The ids and names that the server knows, for the completion scripts. They call it with the words typed so far. */
import { setTimeout as sleep } from 'node:timers/promises'
import { readConfigFile } from '../../config/config-file.ts'
import { resolveSettings } from '../../config/resolve-settings.ts'
import type { SettingName } from '../../config/settings.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import type { PawlApi } from '../../protocol/operations.ts'
import { type Command, type Completion, command, flagsOf } from '../command.ts'
import { connectApi, opensStore } from '../connect-api.ts'
import { findCommand } from '../parse.ts'

interface Candidate {
  readonly word: string
  /** Helps to choose: a name and a state, for example. */
  readonly about: string
}

/** Someone waits at the prompt. */
const patienceSeconds = 1.5
/** A shell must not read anything else in a word. Names may come from people who must not run commands here. */
const safeWord = /^[\w.:@%+=,/-]+$/
const latest = { limit: 100 }

export function completeFor(others: readonly Command[]): Command {
  return command({
    name: 'complete',
    hidden: true,
    runsNoCode: true,
    summary:
      'Print the ids or names that complete a word, each on a line with what it means. Prints nothing if the server does not answer.',
    parameters: { typed: 'the words before the cursor, without pawl', word: 'the word at the cursor' },
    flags: {
      'patience-seconds': { kind: 'number', summary: `how long to wait for the server; default ${patienceSeconds}` },
    },
    async run({ args, flags, env }) {
      const answered = new AbortController()
      const patience = sleep((flags['patience-seconds'] ?? patienceSeconds) * 1000, [], answered)
      const found = await Promise.race([find(others, args, env), patience]).catch(() => [])
      answered.abort()
      const candidates = found
        .filter(({ word }) => safeWord.test(word) && fits(word, args.word))
        // Each line is a candidate.
        .map(({ word, about }) => ({ word, about: about.replace(/[\s\p{Cc}]+/gu, ' ') }))
      return { data: candidates, show: () => candidates.map(({ word, about }) => `${word} ${about}`) }
    },
  })
}

/** An id can also be completed from its end, because lists show only the end of an id. */
function fits(word: string, typed: string): boolean {
  const part = typed.replace(/^…/, '')
  return word.startsWith(part) || (part.length >= 3 && word.endsWith(part))
}

type Env = Readonly<Record<string, string | undefined>>

async function find(others: readonly Command[], args: { typed: string }, env: Env): Promise<readonly Candidate[]> {
  const words = args.typed.split(/\s+/).filter(word => word !== '')
  const kind = expected(others, words)
  if (kind === undefined) return []
  const after = (flag: string) => words[words.indexOf(flag) + 1 || words.length]
  const flags = Object.fromEntries(
    (['server', 'key', 'data', 'database'] as const satisfies readonly SettingName[]).flatMap(name => {
      const value = after(`--${name}`)
      return value === undefined ? [] : [[name, value]]
    }),
  )
  const file = await readConfigFile(process.cwd(), after('--config') ?? (env.PAWL_CONFIG || undefined), {
    runsNoCode: true,
  })
  const resolved = resolveSettings({ flags, env, file })
  // Opening a store is slow, and could create one.
  if (opensStore(resolved)) return []
  await using connection = await connectApi(resolved)
  return await candidatesOf[kind](connection.api)
}

/** The kind of the word at the cursor: the value of the flag before it, or the first argument. */
function expected(others: readonly Command[], words: readonly string[]): Completion | undefined {
  const found = findCommand(others, words)
  if (found === undefined) return undefined
  const { command, rest } = found
  const flags = flagsOf(command)
  const flagAt = (index: number) => {
    const word = rest[index] ?? ''
    return word.startsWith('--') ? flags[word.slice(2)] : undefined
  }
  const last = flagAt(rest.length - 1)
  if (last !== undefined && last.kind !== 'switch') return last.completes
  const positionals = rest.filter((word, index) => {
    const before = flagAt(index - 1)
    return !word.startsWith('-') && (before === undefined || before.kind === 'switch')
  })
  return positionals.length === 0 ? command.completes : undefined
}

const candidatesOf: Readonly<Record<Completion, (api: PawlApi) => Promise<readonly Candidate[]>>> = {
  job: async api =>
    (await api.jobs(latest)).items.map(({ id, name, state }) => ({ word: id, about: `${name} ${state}` })),
  async stage(api) {
    const { items } = await api.stages({ ...latest, state: statesOf(stageLifecycle) })
    return items.map(({ jobId, name, state }) => ({ word: `${jobId}/${name}`, about: state }))
  },
  task: async api =>
    (await api.tasks(latest)).items.map(({ id, type, state }) => ({ word: id, about: `${type} ${state}` })),
  deadLetter: async api =>
    (await api.deadLetters(latest)).items.map(({ id, type, error }) => ({
      word: id,
      about: `${type} ${error?.message ?? ''}`,
    })),
  async type(api) {
    const [types, queues] = await Promise.all([api.taskTypes(latest), api.queues(latest)])
    const names = new Set([...types.items.map(({ type }) => type), ...queues.items.map(({ queue }) => queue)])
    return [...names].map(word => ({ word, about: '' }))
  },
  queue: async api => (await api.queues(latest)).items.map(({ queue, due }) => ({ word: queue, about: `${due} due` })),
  worker: async api =>
    (await api.workers(latest)).items.map(({ worker, queues }) => ({ word: worker, about: queues.join(', ') })),
  key: async api =>
    (await api.keys()).filter(({ revokedAt }) => revokedAt === null).map(({ id, name }) => ({ word: id, about: name })),
}
