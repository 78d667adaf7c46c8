/** Checks which files a job may name and which pods it may start, before anything of the job is written. */

import { checkBucket } from '../../files/files.ts'
import { checkInputs } from '../../files/inputs.ts'
import { checkFolder, parseUri, pathIn, uriOf } from '../../files/uri.ts'
import { commandType, filesInputsOf } from '../../kernel/datum.ts'
import type { StagePlan } from '../../kernel/plan.ts'
import { checkPodRules } from '../../kernel/pod-rules.ts'
import { Problem } from '../../kernel/problem.ts'
import { isObject } from '../../schema/check.ts'
import type { Context } from '../context.ts'

/**
 * On a server without `fileRoots`, jobs may name any local folder. Otherwise a job may name only folders below the
 * roots: even the file names elsewhere are private.
 */
export function checkFiles(context: Context, { name, files }: StagePlan): void {
  if (files === undefined) return
  const { podRules } = context
  if (files.runner?.kind === 'kubernetes' && podRules !== undefined) {
    checkPodRules(podRules, name, files.run, files.runner)
  }
  if (files.inputs !== null) checkInputs(files.inputs)
  const leaves = files.inputs === null ? [] : filesInputsOf(files.inputs)
  const folders = [...leaves.flatMap(({ from }) => ('uri' in from ? [from.uri] : [])), files.outputs]
  for (const folder of folders) if (folder !== null) checkRoot(context, name, folder)
}

/** Checks the files named in the payload of a command task that is enqueued by itself or added to a stage. */
export function checkCommandFiles(context: Context, type: string, payload: unknown, at: string): void {
  if (type !== commandType || !isObject(payload)) return
  const { inputs, outputs } = payload
  const named = [...(Array.isArray(inputs) ? inputs : []).map(input => input?.uri), outputs]
  // The worker refuses a payload with values of another type.
  for (const uri of named) if (typeof uri === 'string') checkLocation(context, at, uri)
}

export function checkRoot(context: Context, at: string, folder: string): void {
  checkLocation(context, at, checkFolder(folder))
}

function checkLocation({ fileRoots, s3Buckets }: Context, at: string, location: string): void {
  if (fileRoots === undefined && s3Buckets === undefined) return
  const place = parseUri(location)
  const uri = uriOf(place)
  if (place.scheme === 's3') checkBucket(s3Buckets, uri, at)
  if (place.scheme === 's3' || fileRoots === undefined) return
  const isInside = fileRoots.some(root => pathIn(root, uri) !== undefined)
  if (!isInside) throw new Problem('FILES_OUTSIDE', { at, uri, roots: fileRoots })
}
