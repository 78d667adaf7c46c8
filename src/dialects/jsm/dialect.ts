import type { Dialect } from '../dialect.ts'
import { words } from './words.ts'

export const jsm: Dialect = {
  name: 'jsm',
  of: 'Job State Machine v1',
  words,
  routes: [],
  refuse: ({ status, code, message }) => ({ status, body: { code, message } }),
  faults: {},
  limits: [],
}
