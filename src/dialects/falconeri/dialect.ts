import type { Issue } from '../../spec/faults.ts'
import { type Answer, type Dialect, type Fault, good } from '../dialect.ts'
import { datumRoutes } from './datum-routes.ts'
import { jobRoutes } from './job-routes.ts'
import { keys, limits } from './limits.ts'
import { words } from './words.ts'

/** The version of Falconeri whose clients speak so. */
const version = '2.0.0-alpha.5'

const user = 'falconeri'

/** Who does not hold a datum, or says something else of it than before, is forbidden to speak. */
const forbidden: readonly string[] = ['LEASE_LOST', 'ARTIFACTS_DIFFER', 'ARTIFACT_UNKNOWN']

function refuse({ status, code, message, details }: Fault): Answer {
  if (status === 401) {
    return { status, headers: { 'www-authenticate': `Basic realm="${user}"` }, body: 'missing or invalid credentials' }
  }
  if (code === 'LEASE_LOST') return { status: 403, body: 'This pod does not hold the datum, or not any more.' }
  if (code === 'TASK_NOT_FOUND') return { status, body: 'No datum has this id.' }
  if (code === 'SPEC_INVALID') {
    const issues = (details.issues ?? []) as readonly Issue[]
    return { status, body: issues.map(({ at, why }) => `${at}: ${why}`).join('\n') }
  }
  return { status: forbidden.includes(code) ? 403 : status, body: message }
}

export const falconeri: Dialect = {
  name: 'falconeri',
  of: 'Falconeri',
  words,
  routes: [
    {
      method: 'GET',
      path: '/version',
      needs: null,
      says: 'The version of Falconeri that is spoken.',
      answers: { type: 'string' },
      handle: async () => good(version),
    },
    ...jobRoutes,
    ...datumRoutes,
  ],
  refuse,
  faults: { type: 'string', minLength: 1 },
  secretIn(authorization) {
    const [, packed] = /^Basic +([A-Za-z0-9+/]+=*)$/i.exec(authorization) ?? []
    const [, name, secret] = /^([^:]*):(.+)$/s.exec(Buffer.from(packed ?? '', 'base64').toString('utf8')) ?? []
    return name === user ? secret : undefined
  },
  keys,
  limits,
}
