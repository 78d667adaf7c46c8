import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse } from 'yaml'
import { faultsInShape } from '../../test/kubernetes/client-shapes.ts'
import type { RunPlan } from '../kernel/datum.ts'
import type { StageToRun } from './manifest.ts'
import { manifestOf } from './manifest.ts'
import { jobNameOf, labelValue, placeOf, podOf } from './names.ts'
import { yamlOf } from './render.ts'
import { settleKubernetes } from './settings.ts'

const settings = settleKubernetes({})
const run: RunPlan = { command: ['sh'], env: { A: 'a' }, secrets: {}, permanentExitCodes: [], mount: null }

const stage: StageToRun = {
  jobId: '0190aaaa-0000-7000-8000-000000000001',
  jobName: 'texts of invoices',
  stageId: '0190aaaa-0000-7000-8000-000000000002',
  stageName: 'Extract',
  queue: 'extract',
  parallelism: 4,
  run,
  runner: { kind: 'kubernetes', image: 'python:3.12-slim' },
  round: 1,
}

const full: StageToRun = {
  ...stage,
  run: { ...run, secrets: { TOKEN: { secret: 'bucket', key: 'token' } } },
  runner: {
    kind: 'kubernetes',
    image: 'registry.example/ocr:2',
    imagePullPolicy: 'Always',
    resources: { cpu: '500m', memory: '2Gi', limits: { memory: '3Gi', 'nvidia.com/gpu': '1' } },
    nodeSelector: { disk: 'ssd' },
    serviceAccount: 'reader',
    activeDeadlineSeconds: 7200,
    ttlSeconds: 600,
    namespace: 'batch',
    labels: { team: 'ocr', 'pawl/stage-id': 'somebody-else' },
  },
}

test('a stage that says no more than its image becomes this Job', () => {
  assert.equal(
    yamlOf([manifestOf(stage, settings)]),
    `apiVersion: batch/v1
kind: Job
metadata:
  name: pawl-0190aaaa000070008000000000000002-1
  labels:
    app.kubernetes.io/name: pawl
    app.kubernetes.io/instance: pawl
    app.kubernetes.io/component: worker
    app.kubernetes.io/managed-by: pawl
    pawl/job-id: 0190aaaa-0000-7000-8000-000000000001
    pawl/stage-id: 0190aaaa-0000-7000-8000-000000000002
    pawl/round: "1"
    pawl/job: texts-of-invoices
    pawl/stage: Extract
  annotations:
    pawl/job-name: texts of invoices
    pawl/stage-name: Extract
spec:
  parallelism: 4
  completions: 1000000000
  backoffLimit: 1000
  podFailurePolicy:
    rules:
      - action: Ignore
        onPodConditions:
          - type: DisruptionTarget
            status: "True"
  ttlSecondsAfterFinished: 86400
  template:
    metadata:
      labels:
        app.kubernetes.io/name: pawl
        app.kubernetes.io/instance: pawl
        app.kubernetes.io/component: worker
        app.kubernetes.io/managed-by: pawl
        pawl/job-id: 0190aaaa-0000-7000-8000-000000000001
        pawl/stage-id: 0190aaaa-0000-7000-8000-000000000002
        pawl/round: "1"
        pawl/job: texts-of-invoices
        pawl/stage: Extract
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 45
      enableServiceLinks: false
      automountServiceAccountToken: false
      securityContext:
        seccompProfile:
          type: RuntimeDefault
      initContainers:
        - name: pawl
          image: pawl:0.1.0
          command:
            - cp
            - -R
            - /opt/pawl/.
            - /copy
          securityContext:
            allowPrivilegeEscalation: false
            capabilities:
              drop:
                - ALL
          volumeMounts:
            - name: pawl
              mountPath: /copy
        - name: key
          image: pawl:0.1.0
          command:
            - cp
            - /secret/key
            - /run/pawl-key/key
          securityContext:
            allowPrivilegeEscalation: false
            capabilities:
              drop:
                - ALL
          volumeMounts:
            - name: key-secret
              mountPath: /secret
              readOnly: true
            - name: key
              mountPath: /run/pawl-key
      volumes:
        - name: pawl
          emptyDir: {}
        - name: empty-0
          emptyDir: {}
        - name: key
          emptyDir:
            medium: Memory
        - name: key-secret
          secret:
            secretName: pawl-worker-key
            items:
              - key: key
                path: key
      containers:
        - name: worker
          image: python:3.12-slim
          command:
            - /opt/pawl/bin/node
            - /opt/pawl/lib/node_modules/pawl/dist/cli/main.js
          args:
            - worker
            - --commands
            - --queue
            - extract
            - --concurrency
            - "1"
            - --name
            - $(NODE_NAME)/$(POD_NAME)
            - --key-file
            - /run/pawl-key/key
            - --delete-key-file
          env:
            - name: NODE_NAME
              valueFrom:
                fieldRef:
                  fieldPath: spec.nodeName
            - name: POD_NAME
              valueFrom:
                fieldRef:
                  fieldPath: metadata.name
            - name: PAWL_SERVER
              value: http://pawl.pawl:7295
          resources: {}
          securityContext:
            allowPrivilegeEscalation: false
            capabilities:
              drop:
                - ALL
          volumeMounts:
            - name: pawl
              mountPath: /opt/pawl
              readOnly: true
            - name: empty-0
              mountPath: /scratch
            - name: key
              mountPath: /run/pawl-key
`,
  )
})

test('all that a stage may say of its pods is in its Job', () => {
  const { metadata, spec } = manifestOf(full, settings)
  const pod = spec!.template.spec!
  const [worker] = pod.containers
  assert.equal(metadata?.namespace, 'batch')
  assert.equal(metadata?.labels?.team, 'ocr')
  assert.equal(spec?.template.metadata?.labels?.team, 'ocr')
  assert.deepEqual([spec?.activeDeadlineSeconds, spec?.ttlSecondsAfterFinished], [7200, 600])
  assert.deepEqual(pod.nodeSelector, { disk: 'ssd' })
  assert.deepEqual([pod.serviceAccountName, pod.automountServiceAccountToken], ['reader', undefined])
  assert.deepEqual([worker?.image, worker?.imagePullPolicy], ['registry.example/ocr:2', 'Always'])
  assert.deepEqual(worker?.resources, {
    requests: { cpu: '500m', memory: '2Gi' },
    limits: { memory: '3Gi', 'nvidia.com/gpu': '1' },
  })
  assert.deepEqual(worker?.env?.at(-1), {
    name: 'TOKEN',
    valueFrom: { secretKeyRef: { name: 'bucket', key: 'token' } },
  })
})

test('a stage cannot take on the labels that another is found by', () => {
  assert.equal(manifestOf(full, settings).metadata?.labels?.['pawl/stage-id'], full.stageId)
})

test('a pod that asks for memory gets no more than that, unless its limits say otherwise', () => {
  const asking = { ...stage, runner: { ...stage.runner, resources: { cpu: '1', memory: '1Gi' } } }
  const [worker] = manifestOf(asking, settings).spec!.template.spec!.containers
  assert.deepEqual(worker?.resources, { requests: { cpu: '1', memory: '1Gi' }, limits: { memory: '1Gi' } })
})

test('every field of a Job is one that Kubernetes’ API knows, and of its type', () => {
  for (const given of [stage, full]) {
    assert.deepEqual(faultsInShape(manifestOf(given, settings), 'V1Job'), [])
    assert.deepEqual(
      parse(yamlOf([manifestOf(given, settings)])),
      JSON.parse(JSON.stringify(manifestOf(given, settings))),
    )
  }
  // Without this check, the test could pass by finding nothing at all.
  const { spec, ...rest } = manifestOf(stage, settings)
  const wrong = { ...rest, spec: { ...spec, paralelism: 1, backoffLimit: '6' } }
  assert.deepEqual(faultsInShape(wrong, 'V1Job'), [
    'V1Job.spec.backoffLimit must be a number, not string',
    'V1Job.spec knows no paralelism',
  ])
})

test('two servers that make the Job of a stage give it the same name, and the next round gets another', () => {
  assert.equal(jobNameOf(stage), jobNameOf({ ...stage }))
  assert.notEqual(jobNameOf(stage), jobNameOf({ ...stage, round: 2 }))
})

test('the names of a Job and of its pods are such as Kubernetes takes, and lead back to the pod', () => {
  const name = jobNameOf({ ...stage, round: 1_000_000 })
  assert.match(name, /^[a-z]([a-z0-9-]*[a-z0-9])?$/)
  assert.ok(`${name}-x7k2p`.length <= 63)
  const pod = { node: 'node-1', name: `${name}-x7k2p`, job: name, stageId: stage.stageId }
  assert.deepEqual(podOf(`node-1/${name}-x7k2p`), pod)
  assert.equal(podOf('laptop-4711-beef'), undefined)
})

test('the node and the pod of a worker are shown whoever started it, and of others none is made up', () => {
  assert.deepEqual(placeOf('node-1/word-count-x7k2p'), { node: 'node-1', name: 'word-count-x7k2p' })
  for (const other of ['laptop-4711-beef', '/pod', 'node/', 'a/b/c']) assert.equal(placeOf(other), undefined)
})

test('a label holds as much of a name as it can', () => {
  assert.equal(labelValue('  Rechnungen für März/2026! '), 'Rechnungen-f-r-M-rz-2026')
  assert.equal(labelValue('x'.repeat(100)), 'x'.repeat(63))
  assert.equal(labelValue('€€€'), '')
})

test('a queue is what it is called, even if Kubernetes would read a variable in it', () => {
  const [worker] = manifestOf({ ...stage, queue: 'cheap$(PAWL_KEY)' }, settings).spec!.template.spec!.containers
  assert.equal(worker?.args?.[3], 'cheap$$(PAWL_KEY)')
})

test('where every image has its own pawl, none is copied; where the server asks for no key, none is given', () => {
  const bare = settleKubernetes({ pawlImage: null, keySecret: null })
  const pod = manifestOf(stage, bare).spec!.template.spec!
  assert.deepEqual([pod.initContainers, pod.volumes], [undefined, [{ name: 'empty-0', emptyDir: {} }]])
  assert.deepEqual(pod.containers[0]?.command, ['pawl'])
  assert.ok(!pod.containers[0]?.args?.includes('--key-file'))
})

test('a setting of the runner that cannot be used is refused before anything is made', () => {
  assert.throws(() => settleKubernetes({ namespace: 'Not A Name' }), { code: 'OPTION_INVALID' })
  assert.throws(() => settleKubernetes({ serverUrl: 'pawl:7295' }), { code: 'OPTION_INVALID' })
  assert.throws(() => settleKubernetes({ namespce: 'x' } as object), { code: 'OPTION_UNKNOWN', message: /namespace/ })
})
