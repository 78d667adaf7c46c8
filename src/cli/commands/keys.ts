import { roles as allRoles, type Role } from '../../kernel/role.ts'
import type { KeyView } from '../../protocol/admin/admin.ts'
import { apiCommand, type Command } from '../command.ts'
import { relativeTime } from '../durations.ts'
import { invalidCommand } from '../parse.ts'
import { controlOptions, historyFlags } from '../shared-flags.ts'
import { type Line, styled } from '../styled-line.ts'
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
      completes: 'queue',
    },
    as: historyFlags.as,
  },
  async run({ api, flags }) {
    const { name, role, queue } = flags
    if (name === undefined || role === undefined) throw invalidCommand('pawl key create requires --name and --role.')
    const roles = role as Role[]
    // A server of an earlier version knows only one role per key.
    const roleField = roles.length === 1 ? { role: roles[0]! } : { roles }
    const request = { name, ...roleField, ...(queue !== undefined && { queues: queue }) }
    const key = await api.createKey(request, controlOptions(flags))
    const show = (): Line[] => [
      [styled('bold', key.secret)],
      styled('dim', `Save this secret now: only its hash is stored. To revoke the key: pawl key revoke ${key.id}`),
    ]
    return { data: key, show }
  },
})

const columns: readonly Column<KeyView>[] = [
  { header: 'ID', value: ({ id }) => id, minWidth: 36 },
  { header: 'NAME', value: ({ name }) => name },
  { header: 'ROLE', value: ({ roles }) => roles.join(', '), optional: true },
  { header: 'QUEUES', value: ({ queues }) => queues?.join(', ') ?? 'all', optional: true },
  { header: 'CREATED', value: ({ createdAt }) => relativeTime(createdAt), align: 'right', optional: true },
  { header: 'BY', value: ({ createdBy }) => createdBy ?? '', optional: true },
  { header: 'REVOKED', value: ({ revokedAt }) => relativeTime(revokedAt), align: 'right', optional: true },
  { header: 'BY', value: ({ revokedBy }) => revokedBy ?? '', optional: true },
]

const keyList = apiCommand({
  name: 'key list',
  summary: 'List API keys, without their secrets.',
  async run({ api }) {
    const keys = await api.keys()
    return {
      data: keys,
      show: ({ width }) => (keys.length === 0 ? ['There are no API keys.'] : table(keys, columns, width)),
    }
  },
})

const keyRevoke = apiCommand({
  name: 'key revoke',
  summary: 'Revoke an API key.',
  parameters: { id: 'the id of the key' },
  completes: 'key',
  flags: { as: historyFlags.as },
  async run({ api, args, flags }) {
    const key = await api.revokeKey(args.id, controlOptions(flags))
    return { data: key, show: () => [`Revoked ${key.id} (${key.name}).`] }
  },
})

export const keyCommands: readonly Command[] = [keyCreate, keyList, keyRevoke]
