/** The parts of a plan that concern files: commands, and where their inputs come from. */
import type { FilesPlan, InputPlan, RunnerPlan, RunPlan } from '../kernel/datum.ts'
import type { FolderSpec, InputSpec, RunSpec, StageSpec } from './job-spec.ts'

export const hasFiles = ({ run, inputs }: StageSpec) => run !== undefined || inputs !== undefined

export function filesPlanOf({ run, inputs, outputs, reuse, runner, payload }: StageSpec): FilesPlan {
  return {
    run: run === undefined ? null : runPlanOf(run),
    inputs: inputs === undefined ? null : inputPlanOf(inputs),
    outputs: outputs === undefined ? null : asFolder(outputs),
    reuse: reuse ?? false,
    runner: runnerPlanOf(runner),
    ...(payload !== undefined && { payload }),
  }
}

function runPlanOf(run: RunSpec): RunPlan {
  return {
    command: [...run.command],
    env: { ...run.env },
    secrets: { ...run.secrets },
    permanentExitCodes: [...(run.permanentExitCodes ?? [])],
    mount: run.mount ?? null,
  }
}

function runnerPlanOf(runner: StageSpec['runner']): RunnerPlan | null {
  if (runner === undefined) return null
  return runner === 'local' ? { kind: 'local' } : { kind: 'kubernetes', ...runner.kubernetes }
}

function inputPlanOf(spec: InputSpec): InputPlan {
  const { cross, union, ...folders } = spec as Partial<Record<'cross' | 'union', readonly InputSpec[]>>
  if (cross !== undefined) return one('cross', cross.map(inputPlanOf))
  if (union !== undefined) return one('union', union.map(inputPlanOf))
  const named = Object.entries(folders as Record<string, FolderSpec>)
  return one(
    'cross',
    named.map(([name, folder]) => leaf(name, folder)),
  )
}

function one(kind: 'cross' | 'union', of: readonly InputPlan[]): InputPlan {
  return of.length === 1 ? of[0]! : { kind, of }
}

function leaf(name: string, { uri, stage, glob = '/*' }: FolderSpec): InputPlan {
  const from = stage === undefined ? { uri: asFolder(uri!) } : { stage }
  return { kind: 'files', name, glob: glob.startsWith('/') ? glob : `/${glob}`, from }
}

const asFolder = (uri: string) => (uri.endsWith('/') ? uri : `${uri}/`)
