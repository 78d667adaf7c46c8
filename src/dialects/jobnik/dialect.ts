import type { Dialect } from '../dialect.ts'
import { words } from './words.ts'

export const jobnik: Dialect = {
  name: 'jobnik',
  of: 'Jobnik',
  words,
  routes: [],
  refuse: ({ status, code, message }) => ({ status, body: { code, message } }),
  faults: {},
  limits: [],
}
