import { roles as allRoles, type Role } from '../../kernel/role.ts'
import type { KeyView } from '../../protocol/admin/keys.ts'
import { callFlags, callOf } from '../asking.ts'
import { apiCommand, type Command } from '../command.ts'
import { type Line, styled } from '../line.ts'
import { relative } from '../moments.ts'
import { refused } from '../parse.ts'
import { type Column, table } from '../table.ts'

const keyCreate = apiCommand({
  name: 'key create',
  summary: 'Create an API key. The secret is shown only once.',
  flags: {
    name: { kind: 'text', value: 'NAME', summary: 'the name of its owner, recorded in the history' },
    role: { kind: 'list', value: 'ROLE', summary: 'a role of the key, may be repeated', words: Object.keys(allRoles) },
    queue: {
      kind: 'list',
      value: 'NAME',
      summary: 'limit the key to this queue, may be repeated; for producers and workers',
    },
    as: callFlags.as,
  },
  async run({ api, flags }) {
    const { name, role, queue } = flags
    if (name === undefined || role === undefined) throw refused('pawl key create wants --name and --role.')
    const roles = role as Role[]
    // A server of an earlier version knows only one role per key.
    const may = roles.length === 1 ? { role: roles[0]! } : { roles }
    const asked = { name, ...may, ...(queue !== undefined && { queues: queue }) }
    const key = await api.createKey(asked, callOf(flags))
    const show = (): Line[] => [
      [styled('bold', key.secret)],
      styled('dim', `Keep it: only its hash is stored. Its id, to revoke it: ${key.id}`),
    ]
    return { data: key, show }
  },
})

const columns: readonly Column<KeyView>[] = [
  { head: 'ID', of: ({ id }) => id, least: 36 },
  { head: 'NAME', of: ({ name }) => name },
  { head: 'ROLE', of: ({ roles }) => roles.join(', '), spare: true },
  { head: 'QUEUES', of: ({ queues }) => queues?.join(', ') ?? 'all', spare: true },
  { head: 'MADE', of: ({ createdAt }) => relative(createdAt), align: 'right', spare: true },
  { head: 'BY', of: ({ createdBy }) => createdBy ?? '', spare: true },
  { head: 'REVOKED', of: ({ revokedAt }) => relative(revokedAt), align: 'right', spare: true },
  { head: 'BY', of: ({ revokedBy }) => revokedBy ?? '', spare: true },
]

const keyList = apiCommand({
  name: 'key list',
  summary: 'List API keys, without their secrets.',
  async run({ api }) {
    const keys = await api.keys()
    return {
      data: keys,
      show: ({ width }) => (keys.length === 0 ? ['There are no keys.'] : table(keys, columns, width)),
    }
  },
})

const keyRevoke = apiCommand({
  name: 'key revoke',
  summary: 'Revoke an API key.',
  takes: { id: 'its id' },
  flags: { as: callFlags.as },
  async run({ api, args, flags }) {
    const key = await api.revokeKey(args.id, callOf(flags))
    return { data: key, show: () => [`Revoked ${key.id} (${key.name}).`] }
  },
})

export const keyCommands: readonly Command[] = [keyCreate, keyList, keyRevoke]
