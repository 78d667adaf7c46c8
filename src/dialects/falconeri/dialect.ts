import type { Issue } from '../../spec/faults.ts'
import { type Answer, type Dialect, type Fault, good, route } from '../dialect.ts'
import { type Rewordings, reword, sameFor } from '../kit/refusals.ts'
import { datumRoutes } from './datum-routes.ts'
import { jobRoutes } from './job-routes.ts'
import { words } from './words.ts'

/** The version of Falconeri whose protocol this is. */
const version = '2.0.0-alpha.5'

const user = 'falconeri'

const rewordings: Rewordings = {
  LEASE_LOST: { status: 403, message: 'This pod does not hold the datum, or no longer does.' },
  ...sameFor(['ARTIFACTS_DIFFER', 'ARTIFACT_UNKNOWN'], { status: 403 }),
  TASK_NOT_FOUND: { message: 'No datum has this id.' },
  SPEC_INVALID: {
    message: ({ issues = [] }) => (issues as readonly Issue[]).map(({ at, why }) => `${at}: ${why}`).join('\n'),
  },
}

function refuse(fault: Fault): Answer {
  const { status, message } = reword(fault, rewordings)
  if (status !== 401) return { status, body: message }
  return { status, headers: { 'www-authenticate': `Basic realm="${user}"` }, body: 'missing or invalid credentials' }
}

export const falconeri: Dialect = {
  name: 'falconeri',
  system: 'Falconeri',
  words,
  routes: [
    route('GET /version', null, {
      summary: 'The version of Falconeri whose protocol this is.',
      answers: { type: 'string' },
      handle: async () => good(version),
    }),
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
}
