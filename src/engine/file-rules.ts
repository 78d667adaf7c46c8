/** Which files jobs may name, and what their pods may have, looked at before anything of a job is written. */
import { checkInputs } from '../files/check-inputs.ts'
import { checkFolder, pathIn } from '../files/uri.ts'
import { leavesOf } from '../kernel/datum.ts'
import type { StagePlan } from '../kernel/plan.ts'
import { checkPodRules } from '../kernel/pod-rules.ts'
import { Problem } from '../kernel/problem.ts'
import type { Context } from './context.ts'

/**
 * Folders of this machine are anybody's where only its own programs can ask. Where others can, with a key, a job may
 * name only those below the roots: what lies elsewhere, not even the names of it, is none of their business.
 */
export function checkFiles(context: Context, { name, files }: StagePlan): void {
  if (files === undefined) return
  const { podRules } = context
  if (files.runner?.kind === 'kubernetes' && podRules !== undefined) {
    checkPodRules(podRules, name, files.run, files.runner)
  }
  if (files.inputs !== null) checkInputs(files.inputs)
  const leaves = files.inputs === null ? [] : leavesOf(files.inputs)
  const folders = [...leaves.flatMap(({ from }) => ('uri' in from ? [from.uri] : [])), files.outputs]
  for (const folder of folders) if (folder !== null) checkRoot(context, name, folder)
}

export function checkRoot({ fileRoots }: Context, at: string, folder: string): void {
  const uri = checkFolder(folder)
  if (!uri.startsWith('file:') || fileRoots === undefined) return
  const isInside = fileRoots.some(root => pathIn(root, uri) !== undefined)
  if (!isInside) throw new Problem('FILES_OUTSIDE', { at, uri, roots: fileRoots })
}
