import type { Dialect } from '../dialect.ts'
import { words } from './words.ts'

export const pipeline: Dialect = {
  name: 'pipeline',
  of: 'the async pipeline',
  words,
  routes: [],
  refuse: ({ status, code, message }) => ({ status, body: { code, message } }),
  faults: {},
  limits: [],
}
