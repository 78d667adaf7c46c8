import type { Dialect } from '../dialect.ts'
import { words } from './words.ts'

export const falconeri: Dialect = {
  name: 'falconeri',
  of: 'Falconeri',
  words,
  routes: [],
  refuse: ({ status, code, message }) => ({ status, body: { code, message } }),
  faults: {},
  limits: [],
}
