import {
  commandType,
  type FilesPlan,
  type InputPlan,
  payloadOf,
  type RunnerPlan,
  type RunPlan,
} from '../kernel/datum.ts'
import type { GatePlan, JobPlan, Openness, StagePlan } from '../kernel/plan.ts'
import { flattenSettings } from '../kernel/settings.ts'
import type { FolderSpec, InputSpec } from './file-fields.ts'
import { needsOf } from './graph.ts'
import type { JobSpec, StageSpec } from './job-spec.ts'

/** A spec without faults, with its defaults. */
export function planOf(spec: JobSpec): JobPlan {
  const { stages = [] } = spec
  const nodes = stages.map(({ name, needs, join }) => ({ name, needs, join }))
  return {
    ...(spec.id !== undefined && { id: spec.id.toLowerCase() }),
    name: spec.name,
    priority: spec.priority ?? 0,
    input: spec.input ?? null,
    metadata: spec.metadata ?? null,
    correlationId: spec.correlationId ?? null,
    traceparent: spec.traceparent ?? null,
    ...(spec.tracestate !== undefined && { tracestate: spec.tracestate }),
    start: spec.start ?? true,
    open: opennessOf(spec.open),
    deadlineSeconds: spec.deadlineSeconds ?? null,
    staleSeconds: spec.staleSeconds ?? null,
    softDeadlineSeconds: spec.softDeadlineSeconds ?? null,
    hardDeadlineSeconds: spec.hardDeadlineSeconds ?? null,
    ...leaseIn(spec),
    stages: stages.map((stage, index) => stagePlanOf({ ...leaseIn(spec), ...stage }, needsOf(nodes, index))),
  }
}

const leaseIn = ({ leaseSeconds }: JobSpec) => (leaseSeconds === undefined ? {} : { leaseSeconds })

function stagePlanOf(stage: StageSpec, needs: readonly string[]): StagePlan {
  const { compensate } = stage
  return {
    name: stage.name,
    needs: [...needs],
    needsWritten: stage.needs !== undefined,
    join: stage.join ?? 'all',
    when: stage.when ?? null,
    forEach: stage.forEach ?? null,
    ...(stage.gives !== undefined && { gives: stage.gives }),
    task: stage.run === undefined ? (stage.task ?? null) : commandType,
    queue: stage.queue ?? null,
    ...(hasFiles(stage) && { files: filesPlanOf(stage) }),
    ...tasksOf(stage),
    ...(stage.taskId !== undefined && { taskId: stage.taskId.toLowerCase() }),
    ...(stage.taskMetadata !== undefined && { taskMetadata: stage.taskMetadata }),
    ...(stage.runAt !== undefined && { runAt: new Date(stage.runAt).toISOString() }),
    open: opennessOf(stage.open),
    tolerate: { ...stage.tolerate },
    failFast: stage.failFast ?? true,
    onFailure: stage.onFailure ?? 'fail',
    gate: gateOf(stage.gate),
    parallelism: stage.parallelism ?? null,
    compensate: compensate === undefined ? null : { task: compensate.task, queue: compensate.queue ?? null },
    settings: flattenSettings(stage) ?? {},
    ...(stage.data !== undefined && { data: stage.data }),
    ...(stage.traceparent !== undefined && { traceparent: stage.traceparent }),
    metadata: stage.metadata ?? null,
  }
}

function opennessOf(open: JobSpec['open'] = false): Openness {
  if (open === 'untilDone') return open
  return open ? 'open' : 'sealed'
}

function tasksOf(stage: StageSpec): Pick<StagePlan, 'payloads' | 'single'> {
  const { task, payload, payloads, forEach, open } = stage
  if (hasFiles(stage)) {
    const { inputs, ...files } = filesPlanOf(stage)
    return inputs === null ? { payloads: [payloadOf(files, [])], single: true } : { payloads: [], single: false }
  }
  if (payloads !== undefined) return { payloads: payloads.map(one => one ?? null), single: false }
  if (payload !== undefined) return { payloads: [payload], single: true }
  const hasNone = task === undefined || forEach !== undefined || opennessOf(open) !== 'sealed'
  return hasNone ? { payloads: [], single: false } : { payloads: [null], single: true }
}

function gateOf(gate: StageSpec['gate']): GatePlan | null {
  if (gate === undefined) return null
  const { approvers = 1, timeoutSeconds = null, ask = null } = gate === true ? {} : gate
  return { approvers, timeoutSeconds, ask }
}

const asFolder = (uri: string) => (uri.endsWith('/') ? uri : `${uri}/`)

const hasFiles = ({ run, inputs }: StageSpec) => run !== undefined || inputs !== undefined

function filesPlanOf({ run, inputs, outputs, reuse, runner, payload }: StageSpec): FilesPlan {
  return {
    run: run === undefined ? null : runPlanOf(run),
    inputs: inputs === undefined ? null : inputPlanOf(inputs),
    outputs: outputs === undefined ? null : asFolder(outputs),
    reuse: reuse ?? false,
    runner: runnerPlanOf(runner),
    ...(payload !== undefined && { payload }),
  }
}

function runPlanOf(run: NonNullable<StageSpec['run']>): RunPlan {
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
