/**
 * Renders a stage as a Kubernetes Job whose pods are workers of the stage's queue. The Job does not decide anything
 * about the stage: it keeps that many workers alive until Pawl deletes it, because only Pawl knows when the stage has
 * ended.
 *
 * - `completions` is out of reach. Otherwise a worker that exits normally because its node is drained would count as
 *   the end of the work, and no other would be started.
 * - `restartPolicy: Never`: a worker that dies takes its pod with it, so that the pod's end is the worker's end, and
 *   the name `node/pod` never stands for two processes.
 * - Evicted and preempted pods do not count as failures. Others do, because a Job whose pods cannot work at all must
 *   end at some point. Kubernetes waits up to six minutes between failures, so a thousand of them take days.
 */
import type { V1Container, V1EnvVar, V1Job, V1PodSpec, V1SecurityContext, V1Volume } from '@kubernetes/client-node'
import type { KubernetesPlan, RunPlan, SecretRef } from '../kernel/datum.ts'
import { Problem } from '../kernel/problem.ts'
import { jobNameOf, labels, labelValue, workerNameInPod } from './names.ts'
import type { ManifestSettings } from './settings.ts'

export interface StageToRun {
  readonly jobId: string
  readonly jobName: string
  readonly stageId: string
  readonly stageName: string
  /** A queue of the stage's own, so that its tasks run in its image. */
  readonly queue: string
  /** Pods at once. */
  readonly parallelism: number
  readonly run: RunPlan
  readonly runner: KubernetesPlan
  /** A retried stage gets new workers in each round. */
  readonly round: number
}

/** As set by the runner of the stage, else its parallelism. */
export function podsOf({ pods }: KubernetesPlan, parallelism: number | null): number {
  return pods ?? parallelism ?? 1
}

const outOfReach = 1_000_000_000
const podFailures = 1_000
const dayInSeconds = 86_400
/** A worker that is told to stop finishes what it can within 30 s. */
const graceSeconds = 45

/** The location of Node and Pawl in Pawl's image, and in the images that they are copied to. */
const home = '/opt/pawl'
const program = [`${home}/bin/node`, `${home}/lib/node_modules/pawl/dist/cli/main.js`]

export function manifestOf(stage: StageToRun, settings: ManifestSettings): V1Job {
  const { runner } = stage
  const namespace = runner.namespace ?? settings.namespace
  const marks = marksOf(stage, settings)
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: jobNameOf(stage),
      ...(namespace !== undefined && { namespace }),
      labels: marks,
      annotations: { 'pawl/job-name': stage.jobName, 'pawl/stage-name': stage.stageName },
    },
    spec: {
      parallelism: stage.parallelism,
      completions: outOfReach,
      backoffLimit: podFailures,
      podFailurePolicy: {
        rules: [{ action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] }],
      },
      ...(runner.activeDeadlineSeconds !== undefined && { activeDeadlineSeconds: runner.activeDeadlineSeconds }),
      ttlSecondsAfterFinished: runner.ttlSeconds ?? dayInSeconds,
      template: { metadata: { labels: marks }, spec: podOf(stage, settings) },
    },
  }
}

/** The labels of a stage cannot replace those by which its Job is found. */
function marksOf(stage: StageToRun, { instance }: ManifestSettings): Record<string, string> {
  return {
    ...stage.runner.labels,
    [labels.name]: 'pawl',
    [labels.instance]: instance,
    [labels.component]: 'worker',
    [labels.managedBy]: 'pawl',
    [labels.jobId]: stage.jobId,
    [labels.stageId]: stage.stageId,
    [labels.round]: String(stage.round),
    [labels.job]: labelValue(stage.jobName),
    [labels.stage]: labelValue(stage.stageName),
  }
}

function podOf(stage: StageToRun, settings: ManifestSettings): V1PodSpec {
  const { nodeSelector, serviceAccount, tolerations } = stage.runner
  const { pawlImage } = settings
  const volumes: V1Volume[] = [
    ...(pawlImage === null ? [] : [{ name: 'pawl', emptyDir: {} }]),
    ...emptyFoldersOf(stage).map(({ name }) => ({ name, emptyDir: {} })),
    ...secretFoldersOf(stage).map(({ name, secretName }) => ({ name, secret: { secretName } })),
    ...keyVolumesOf(settings),
  ]
  const initContainers = [
    ...(pawlImage === null ? [] : [copierOf(pawlImage)]),
    ...(settings.keySecret === null ? [] : [keyGiverOf(pawlImage ?? stage.runner.image)]),
  ]
  return {
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: graceSeconds,
    // Otherwise a Service called pawl would add PAWL_… variables to every pod.
    enableServiceLinks: false,
    ...(serviceAccount === undefined
      ? { automountServiceAccountToken: false }
      : { serviceAccountName: serviceAccount }),
    securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
    ...(nodeSelector !== undefined && { nodeSelector: { ...nodeSelector } }),
    ...(tolerations !== undefined && { tolerations: tolerations.map(toleration => ({ ...toleration })) }),
    ...(initContainers.length > 0 && { initContainers }),
    ...(volumes.length > 0 && { volumes }),
    containers: [workerOf(stage, settings)],
  }
}

/** Secrets that are mounted as files, one volume each. */
function secretFoldersOf({ runner }: StageToRun) {
  const folders = Object.entries(runner.secretFolders ?? {})
  return folders.map(([mountPath, secretName], index) => ({ name: `secret-${index}`, mountPath, secretName }))
}

/**
 * Writable folders for any user, because the root folder of most images is writable only for root. Kubernetes rejects
 * two mounts at the same path, so a folder of secrets replaces an empty one.
 */
function emptyFoldersOf(stage: StageToRun) {
  const places = [...(stage.run.mount === null ? [] : [stage.run.mount]), '/scratch']
  const taken = secretFoldersOf(stage).map(({ mountPath }) => bare(mountPath))
  const free = [...new Set(places.map(bare))].filter(place => !taken.includes(place))
  return free.map((mountPath, index) => ({ name: `empty-${index}`, mountPath }))
}

const bare = (path: string) => path.replace(/\/+$/, '')

/** The image decides on the user and the file system. Privileges that a command never needs are dropped. */
const bounds: V1SecurityContext = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } }

function copierOf(image: string): V1Container {
  return {
    name: 'pawl',
    image,
    command: ['cp', '-R', `${home}/.`, '/copy'],
    securityContext: bounds,
    volumeMounts: [{ name: 'pawl', mountPath: '/copy' }],
  }
}

/**
 * Only an init container mounts the worker's key. It passes the key on in a file that the worker reads and deletes
 * before it runs a command. Commands could read a Secret that the worker's own container mounts or has as a variable.
 */
const keyFolder = '/run/pawl-key'

function keyVolumesOf({ keySecret }: ManifestSettings): V1Volume[] {
  if (keySecret === null) return []
  const { secret: secretName, key } = keySecret
  return [
    { name: 'key', emptyDir: { medium: 'Memory' } },
    { name: 'key-secret', secret: { secretName, items: [{ key, path: 'key' }] } },
  ]
}

function keyGiverOf(image: string): V1Container {
  return {
    name: 'key',
    image,
    command: ['cp', '/secret/key', `${keyFolder}/key`],
    securityContext: bounds,
    volumeMounts: [
      { name: 'key-secret', mountPath: '/secret', readOnly: true },
      { name: 'key', mountPath: keyFolder },
    ],
  }
}

function workerOf(stage: StageToRun, settings: ManifestSettings): V1Container {
  const { image, imagePullPolicy, resources } = stage.runner
  const isCopied = settings.pawlImage !== null
  // One task at a time, because parallelism counts pods and their resources are meant for one command.
  const args = [
    'worker',
    '--commands',
    '--queue',
    literal(stage.queue),
    '--concurrency',
    '1',
    '--name',
    workerNameInPod,
    ...(settings.keySecret === null ? [] : ['--key-file', `${keyFolder}/key`, '--delete-key-file']),
  ]
  const limits = resources?.limits ?? (resources?.memory === undefined ? undefined : { memory: resources.memory })
  const requests = {
    ...(resources?.cpu !== undefined && { cpu: resources.cpu }),
    ...(resources?.memory !== undefined && { memory: resources.memory }),
  }
  const mounts = [
    ...(isCopied ? [{ name: 'pawl', mountPath: home, readOnly: true }] : []),
    ...emptyFoldersOf(stage),
    ...secretFoldersOf(stage).map(({ name, mountPath }) => ({ name, mountPath, readOnly: true })),
    ...(settings.keySecret === null ? [] : [{ name: 'key', mountPath: keyFolder }]),
  ]
  return {
    name: 'worker',
    image,
    ...(imagePullPolicy !== undefined && { imagePullPolicy }),
    command: isCopied ? program : ['pawl'],
    args,
    env: environmentOf(stage, settings),
    resources: {
      ...(Object.keys(requests).length > 0 && { requests }),
      ...(limits !== undefined && { limits: { ...limits } }),
    },
    securityContext: bounds,
    ...(mounts.length > 0 && { volumeMounts: mounts }),
  }
}

function environmentOf({ run }: StageToRun, { serverUrl }: ManifestSettings): V1EnvVar[] {
  const own: V1EnvVar[] = [
    { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
    { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
    { name: 'PAWL_SERVER', value: literal(serverUrl) },
  ]
  const names = Object.keys(run.secrets)
  const taken = names.find(name => name.startsWith('PAWL_') || own.some(variable => variable.name === name))
  if (taken !== undefined) {
    const must = 'have a different name: NODE_NAME, POD_NAME and PAWL_… are reserved for the worker'
    throw new Problem('OPTION_INVALID', { at: 'run.secrets', option: taken, must })
  }
  const shared = Object.entries(run.env).filter(([name]) => isForFiles(name) && !names.includes(name))
  return [
    ...own,
    ...shared.map(([name, value]) => ({ name, value: literal(value) })),
    ...names.map(name => secretIn(name, run.secrets[name]!)),
  ]
}

/**
 * Variables of the command that the worker needs too, to download and upload files. It gets no others: a library path
 * or Node options that are meant for the command could keep the worker from starting.
 */
function isForFiles(name: string): boolean {
  return name.startsWith('AWS_') || name === 'NODE_EXTRA_CA_CERTS'
}

function secretIn(name: string, { secret, key, optional = false }: SecretRef): V1EnvVar {
  return { name, valueFrom: { secretKeyRef: { name: secret, key, ...(optional && { optional }) } } }
}

/** In arguments and variables, Kubernetes expands `$(NAME)` and replaces `$$` by `$`. */
function literal(text: string): string {
  return text.replaceAll('$', '$$$$')
}
