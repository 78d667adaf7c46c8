/** The common parts of commands about one job, stage or task, which is named by a part of its id. */

import { withoutUndefined } from '../kernel/without-undefined.ts'
import type { CancelCall, ControlCall, PageQuery } from '../protocol/call-options.ts'
import type { PawlApi } from '../protocol/operations.ts'
import type { EventView, Page } from '../protocol/tasks/tasks.ts'
import { apiCommand, type Command, type Flag, type Flags, type FlagValues, showingCommand } from './command.ts'
import { eventLines } from './event-lines.ts'
import { controlOptions, historyFlags, pageFlags } from './shared-flags.ts'
import type { Line } from './styled-line.ts'
import { pageEnd } from './table.ts'

export interface EntityKind<View> {
  readonly noun: 'job' | 'stage' | 'task'
  readonly parameters: { readonly id: string }
  /** The id that a typed text means. */
  find(api: PawlApi, typed: string): Promise<string>
  /** The answer of a command that changes the state. */
  line(view: View): Line
}

const hardFlag = {
  hard: { kind: 'switch', summary: 'fence off running work immediately instead of letting it finish' },
} as const

export function commandsFor<View>({ noun, parameters, find, line }: EntityKind<View>) {
  /** A command that changes the state. `flags`: besides those for the history. */
  function control<const F extends Flags = Record<never, Flag>>(
    word: string,
    summary: string,
    act: (api: PawlApi, id: string, call: ControlCall, flags: FlagValues<F>) => Promise<View>,
    flags?: F,
  ): Command {
    return showingCommand({
      name: `${noun} ${word}`,
      summary,
      parameters,
      completes: noun,
      flags: { ...historyFlags, ...flags },
      async run({ api, args, flags: typed }) {
        const id = await find(api, args.id)
        const view = await act(api, id, controlOptions(typed), typed as unknown as FlagValues<F>)
        return { data: view, show: () => [line(view)] }
      },
    })
  }
  return {
    control,
    cancel: (act: (api: PawlApi, id: string, call: CancelCall) => Promise<View>) =>
      control(
        'cancel',
        `Cancel a ${noun}.`,
        (api, id, call, { hard }) => act(api, id, { ...call, ...(hard && { mode: 'hard' }) }),
        hardFlag,
      ),
    remove: (summary: string, act: (api: PawlApi, id: string, call: ControlCall) => Promise<void>) =>
      apiCommand({
        name: `${noun} delete`,
        summary,
        parameters,
        completes: noun,
        flags: historyFlags,
        async run({ api, args, flags }) {
          const id = await find(api, args.id)
          await act(api, id, controlOptions(flags))
          return { data: { id, deleted: true }, show: () => [`Deleted ${id}.`] }
        },
      }),
    events: (read: (api: PawlApi, id: string, query: PageQuery) => Promise<Page<EventView>>) =>
      showingCommand({
        name: `${noun} events`,
        summary: `Show the events of a ${noun}, oldest first.`,
        parameters,
        completes: noun,
        flags: pageFlags,
        async run({ api, args, flags }) {
          const page = await read(api, await find(api, args.id), withoutUndefined(flags))
          return { data: page, show: ({ width }) => [...eventLines(page.items, width), ...pageEnd(page)] }
        },
      }),
  }
}
