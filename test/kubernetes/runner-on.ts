import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { stringify } from 'yaml'
import { newId } from '../../src/kernel/id.ts'
import type { PodRules } from '../../src/kernel/pod-rules.ts'
import { type KubernetesRunner, openKubernetesRunner } from '../../src/runners/kubernetes.ts'
import type { StageToRun } from '../../src/runners/manifest.ts'
import type { KubernetesSettings } from '../../src/runners/settings.ts'
import { token } from './small-api-server.ts'

/** A typical kubeconfig, for a server at this address. */
export function kubeconfigFor(t: TestContext, url: string, shown = token): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-kube-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'config')
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'small', cluster: { server: url, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'pawl', user: { token: shown } }],
    contexts: [{ name: 'small', context: { cluster: 'small', user: 'pawl', namespace: 'pawl' } }],
    'current-context': 'small',
  }
  writeFileSync(file, stringify(config))
  return file
}

/** The runner settings of the test stages. */
const allow: PodRules = {
  images: ['*'],
  namespaces: ['pawl', 'other', 'nowhere', 'n1', 'n2'],
  secrets: ['mine'],
  serviceAccounts: [],
}

export function runnerOn(t: TestContext, url: string, more: KubernetesSettings = {}): Promise<KubernetesRunner> {
  return openKubernetesRunner({ kubeconfig: kubeconfigFor(t, url), allow, ...more })
}

/** A stage of its own, with one worker in Kubernetes. */
export function stageToRun(more: Partial<StageToRun> = {}): StageToRun {
  return {
    jobId: newId(),
    jobName: 'texts',
    stageId: newId(),
    stageName: 'extract',
    queue: 'extract',
    parallelism: 1,
    run: { command: ['true'], env: {}, secrets: {}, permanentExitCodes: [], mount: null },
    runner: { kind: 'kubernetes', image: 'debian:12' },
    round: 1,
    ...more,
  }
}

/** The name of the worker in a pod. */
export function workerNameOf({ node, name }: { readonly node: string; readonly name: string }): string {
  return `${node}/${name}`
}
