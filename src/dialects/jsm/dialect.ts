import type { Dialect } from '../dialect.ts'
import { keys, limits } from './limits.ts'
import { refusalSchema, refuse } from './refuse.ts'
import { routes } from './routes.ts'
import { words } from './words.ts'

export const jsm: Dialect = {
  name: 'jsm',
  of: 'Job State Machine v1',
  words,
  routes,
  refuse,
  faults: refusalSchema,
  keys,
  limits,
}
