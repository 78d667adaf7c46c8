import type { Answer, Dialect, Fault } from '../dialect.ts'
import { type Rewordings, reword, sameFor } from '../kit/refusals.ts'
import { jobRoutes } from './job-routes.ts'
import { refused } from './requests.ts'
import { serviceRoutes } from './service-routes.ts'
import { stageRoutes } from './stage-routes.ts'
import { taskRoutes } from './task-routes.ts'
import { faultSchema } from './views.ts'
import { words } from './words.ts'

const invalid = { code: 'VALIDATION_ERROR' }

const rewordings: Rewordings = {
  // Jobnik repeats these codes as the message.
  JOB_NOT_FOUND: { message: 'JOB_NOT_FOUND' },
  STAGE_NOT_FOUND: { message: 'STAGE_NOT_FOUND' },
  TASK_NOT_FOUND: { message: 'TASK_NOT_FOUND' },
  ...sameFor(
    [
      'OPTION_UNKNOWN',
      'OPTION_INVALID',
      'PAYLOAD_INVALID',
      'PAYLOAD_TOO_LARGE',
      'TOO_MANY_TASKS',
      'BODY_INVALID',
      'BODY_TOO_LARGE',
      'BODY_TYPE',
      'REQUEST_INVALID',
    ],
    invalid,
  ),
  ...sameFor(['SPEC_INVALID', 'PAYLOAD_REFUSED'], { ...invalid, status: 400 }),
  STORE_UNAVAILABLE: { code: 'DATABASE_RELATED_ERROR' },
}

function refuse(fault: Fault): Answer {
  const { status, code, message } = reword(fault, rewordings)
  const isUnknown = status >= 500 && code === fault.code
  const answer = refused(status, isUnknown ? 'UNKNOWN_ERROR' : code, message)
  return status === 401 ? { ...answer, headers: { 'www-authenticate': 'Bearer' } } : answer
}

export const jobnik: Dialect = {
  name: 'jobnik',
  system: 'Jobnik',
  words,
  routes: [...jobRoutes, ...stageRoutes, ...taskRoutes, ...serviceRoutes],
  refuse,
  faults: faultSchema,
}
