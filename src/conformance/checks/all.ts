import type { Check } from '../check.ts'
import { carefulChecks } from './careful.ts'
import { leaseChecks } from './leases.ts'
import { mannersChecks } from './manners.ts'
import { outcomeChecks } from './outcomes.ts'
import { reportChecks } from './reports.ts'
import { shutdownChecks } from './shutdown.ts'

export const allChecks: readonly Check[] = [
  ...outcomeChecks,
  ...leaseChecks,
  ...carefulChecks,
  ...reportChecks,
  ...shutdownChecks,
  ...mannersChecks,
]
