import type { FastifyInstance } from 'fastify'
import { permissionsOf } from '../kernel/role.ts'
import type { Me } from '../protocol/keys.ts'
import { admit, type Door } from './admit.ts'

/** Who the asker is and what it may do: what a page shows depends on it. What it then does is checked all the same. */
export function bindMe(app: FastifyInstance, door: Door): void {
  app.get('/v1/me', async (request): Promise<Me> => {
    const { name = null, roles, queues } = await admit(door, request)
    return { name, role: roles[0]!, roles, permissions: permissionsOf(roles), queues }
  })
}
