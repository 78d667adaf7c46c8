import type { Dialect } from '../dialect.ts'
import { words } from './words.ts'

export const marie: Dialect = {
  name: 'marie',
  of: 'Marie’s scheduler',
  words,
  routes: [],
  refuse: ({ status, code, message }) => ({ status, body: { code, message } }),
  faults: {},
  limits: [],
}
