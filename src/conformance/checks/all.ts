import type { Check } from '../check.ts'
import { carefulTaskChecks } from './careful-tasks.ts'
import { efficiencyChecks } from './efficiency.ts'
import { leaseChecks } from './leases.ts'
import { outcomeChecks } from './outcomes.ts'
import { reportChecks } from './reports.ts'
import { shutdownChecks } from './shutdown.ts'

export const allChecks: readonly Check[] = [
  ...outcomeChecks,
  ...leaseChecks,
  ...carefulTaskChecks,
  ...reportChecks,
  ...shutdownChecks,
  ...efficiencyChecks,
]
