import type { FilesInput, InputPlan } from '../kernel/datum.ts'
import { Problem } from '../kernel/problem.ts'
import { globError } from './glob.ts'
import { checkFolder } from './uri.ts'

const deepest = 20

/** Rejects an invalid input plan before anything is listed. */
export function checkInputs(plan: InputPlan): void {
  namesIn(plan, 'input', 0)
}

/** The input names that a datum of this plan may have. */
function namesIn(plan: InputPlan, at: string, depth: number): ReadonlySet<string> {
  if (depth > deepest) throw new Problem('INPUTS_INVALID', { at, why: `it is nested more than ${deepest} levels deep` })
  if (plan.kind === 'files') return new Set([checkFiles(plan, at)])
  if (plan.of.length === 0) throw new Problem('INPUTS_INVALID', { at, why: `a ${plan.kind} needs at least one input` })
  const names = new Set<string>()
  for (const [index, part] of plan.of.entries()) {
    for (const name of namesIn(part, `${at}.${plan.kind}[${index}]`, depth + 1)) {
      // A datum of a union comes from one part. A datum of a cross has inputs from all parts, so names must differ.
      if (plan.kind === 'cross' && names.has(name))
        throw new Problem('INPUTS_INVALID', { at, why: `two inputs of a cross have the same name "${name}"` })
      names.add(name)
    }
  }
  return names
}

function checkFiles({ name, glob, from }: FilesInput, at: string): string {
  const refuse = (why: string): never => {
    throw new Problem('INPUTS_INVALID', { at, why })
  }
  if (!/^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,99}$/.test(name))
    refuse(`the name ${JSON.stringify(name)} must have up to 100 letters, digits, _ . and -`)
  if (name === 'out') refuse('the name "out" is reserved for the outputs')
  const error = globError(glob)
  if (error !== undefined) refuse(`the glob ${JSON.stringify(glob)} is invalid: ${error}`)
  if ('uri' in from) checkFolder(from.uri)
  return name
}
