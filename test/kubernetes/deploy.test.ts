/** Checks everything about deploy/ that can be checked without running it in a cluster. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { findRoot } from '../../scripts/job-schema-page.ts'
import { up } from '../../src/cli/commands/up.ts'
import { readArguments } from '../../src/cli/parse.ts'
import { resolveSettings } from '../../src/config/resolve-settings.ts'
import { usual } from '../../src/runners/settings.ts'
import { serverDefaults } from '../../src/server/options.ts'
import { faultsInShape } from './client-shapes.ts'
import { runnerOn, stageToRun } from './runner-on.ts'
import { type Asked, startSmallApiServer } from './small-api-server.ts'

const root = findRoot(import.meta.dirname)
const deploy = join(root, 'deploy')
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }

// biome-ignore lint/suspicious/noExplicitAny: manifests of every kind, checked against their shapes below
type Manifest = any

const read = (name: string): Manifest[] =>
  parseAllDocuments(readFileSync(join(deploy, name), 'utf8')).map(document => {
    assert.deepEqual(document.errors, [], name)
    return document.toJS()
  })
/** The chart has its own test, and docker-compose.yaml too. */
const isManifest = (name: string) =>
  name.endsWith('.yaml') && !name.startsWith('helm/') && name !== 'docker-compose.yaml'
const files = (readdirSync(deploy, { recursive: true }) as string[]).filter(isManifest)
const isList = (name: string) => name.endsWith('kustomization.yaml')
const base = files.filter(name => /^(base|stages)\//.test(name) && !isList(name)).flatMap(read)
const [firstKeys] = read('first-keys.yaml')
const one = (kind: string, name: string): Manifest =>
  base.find(manifest => manifest.kind === kind && manifest.metadata.name === name) ?? assert.fail(`no ${kind} ${name}`)
const server = one('Deployment', 'pawl').spec.template
const database = one('StatefulSet', 'pawl-postgres').spec.template

test('every manifest in deploy/ has only fields that Kubernetes knows, of their types', () => {
  const whole = files.filter(name => !isList(name) && !name.startsWith('overlays/')).flatMap(read)
  assert.ok(whole.length >= 11)
  for (const manifest of whole) assert.deepEqual(faultsInShape(manifest, `V1${manifest.kind}`), [], manifest.kind)
})

test('what a kustomization lists is there, and what is there is listed', () => {
  for (const name of files.filter(isList)) {
    const folder = join(deploy, name, '..')
    const { resources = [], patches = [] } = read(name)[0] as { resources?: string[]; patches?: { path: string }[] }
    const listed = [...resources, ...patches.map(({ path }) => path)]
    for (const entry of listed) assert.ok(existsSync(join(folder, entry)), `${name}: ${entry}`)
    const others = [
      'README.md',
      'Dockerfile',
      'docker-compose.yaml',
      'first-keys.yaml',

      'helm',
      'overlays',
    ]
    const beside = readdirSync(folder).filter(entry => !isList(entry) && !others.includes(entry))
    assert.deepEqual(listed.filter(entry => !entry.startsWith('..')).sort(), beside.sort())
  }
})

test('the Role in deploy/ lets the server do what it does, and it does it as that Role’s account', async t => {
  const { rules } = one('Role', 'pawl') as { rules: { apiGroups: string[]; resources: string[]; verbs: string[] }[] }
  const small = await startSmallApiServer(t, ['pawl'])
  const group = ({ resource }: Asked) => (resource === 'jobs' ? 'batch' : '')
  small.allows = asked =>
    rules.some(
      ({ apiGroups, resources, verbs }) =>
        apiGroups.includes(group(asked)) && resources.includes(asked.resource) && verbs.includes(asked.verb),
    )
  const runner = await runnerOn(t, small.url)
  const stage = stageToRun()
  assert.deepEqual(await runner.ensure([stage]), [{ stageId: stage.stageId }])
  assert.deepEqual((await runner.inspect([undefined])).namespaces, ['pawl'])
  await runner.stop(stage)
  assert.equal(small.cluster.list('jobs', 'pawl').length, 0)

  const binding = one('RoleBinding', 'pawl')
  assert.deepEqual([binding.roleRef.kind, binding.roleRef.name], ['Role', 'pawl'])
  assert.deepEqual(binding.subjects, [
    { kind: 'ServiceAccount', name: server.spec.serviceAccountName, namespace: 'pawl' },
  ])
  assert.ok(one('ServiceAccount', server.spec.serviceAccountName))
})

test('the server in deploy/ is told to start the workers of stages in Kubernetes', () => {
  const [{ args, env }] = server.spec.containers
  const [name, ...words] = args as string[]
  assert.equal(name, up.name)
  const given = env.map((variable: Manifest) => [variable.name, variable.value])
  const { values } = resolveSettings({
    flags: readArguments(up, words).settings,
    env: Object.fromEntries(given),
    file: undefined,
  })
  assert.equal(values.kubernetes, true)
})

test('stages run in a namespace of their own, which holds no Secret of the server, and only there has the server rights', () => {
  const [{ env }] = server.spec.containers
  const stages = env.find(({ name }: Manifest) => name === 'PAWL_K8S_NAMESPACE').value
  assert.ok(one('Namespace', stages))
  assert.notEqual(stages, one('Deployment', 'pawl').metadata.namespace)
  const inStages = base.filter(({ metadata }) => metadata.namespace === stages).map(({ kind }) => kind)
  assert.deepEqual(inStages.toSorted(), ['NetworkPolicy', 'Role', 'RoleBinding'])
  const roles = base.filter(({ kind }) => /Role/.test(kind))
  assert.deepEqual(new Set(roles.map(({ metadata }) => metadata.namespace)), new Set([stages]))
})

test('everything in deploy/ speaks of the same image, the one that workers are made from', () => {
  const [{ image, env }] = server.spec.containers
  const ofKeys = [...firstKeys.spec.initContainers, ...firstKeys.spec.containers].map(container => container.image)
  const listedImages = env.find(({ name }: { name: string }) => name === 'PAWL_K8S_IMAGE').value
  assert.deepEqual(new Set([image, listedImages, usual.pawlImage, ...ofKeys]), new Set([`pawl:${version}`]))
  const [{ images }] = read('overlays/example/server/kustomization.yaml')
  assert.deepEqual([images[0].name, images[0].newTag], ['pawl', version])
  assert.match(readFileSync(join(deploy, 'Dockerfile'), 'utf8'), new RegExp(`-t pawl:${version} `))
})

test('the port that the server listens on is the one that is probed, served and told to workers', () => {
  const { port: defaultPort } = serverDefaults
  const [{ env, ports, startupProbe, livenessProbe, readinessProbe }] = server.spec.containers
  const value = (wanted: string) => env.find(({ name }: { name: string }) => name === wanted).value
  const [service] = one('Service', 'pawl').spec.ports
  assert.deepEqual(ports, [{ name: 'http', containerPort: defaultPort }])
  assert.deepEqual([service.port, service.targetPort, value('PORT')], [defaultPort, 'http', String(defaultPort)])
  assert.deepEqual(
    [value('PAWL_K8S_URL'), usual.serverUrl],
    [`http://pawl.pawl:${defaultPort}`, `http://pawl.pawl:${defaultPort}`],
  )
  assert.deepEqual(
    [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => [httpGet.path, httpGet.port]),
    [
      ['/healthz', 'http'],
      ['/healthz', 'http'],
      ['/readyz', 'http'],
    ],
  )
})

test('the database’s address names its Service, port, user and password', () => {
  const { stringData } = one('Secret', 'pawl-database')
  const url = new URL(stringData.url)
  const { metadata, spec } = one('Service', 'pawl-postgres')
  assert.deepEqual(
    [url.hostname, url.port, url.password],
    [metadata.name, String(spec.ports[0].port), stringData.password],
  )
  const [{ env, ports, volumeMounts }] = database.spec.containers
  assert.equal(url.username, env.find(({ name }: { name: string }) => name === 'POSTGRES_USER').value)
  assert.equal(ports[0].containerPort, spec.ports[0].port)
  assert.equal(one('StatefulSet', 'pawl-postgres').spec.volumeClaimTemplates[0].metadata.name, volumeMounts[0].name)
})

test('every Secret and key that a container reads is one that deploy/ makes', () => {
  const pods = [server.spec, database.spec, firstKeys.spec]
  const containers = pods.flatMap(({ initContainers = [], containers }) => [...initContainers, ...containers])
  const refs = containers.flatMap(({ env }) => env.flatMap(({ valueFrom }: Manifest) => valueFrom?.secretKeyRef ?? []))
  assert.ok(refs.length >= 4)
  for (const { name, key } of refs) assert.ok(key in one('Secret', name).stringData, `${name} has no ${key}`)
})

test('Services, workloads and the network policy find the pods that they are for, and no workers', () => {
  const fits = (selector: object, labels: Record<string, string>) =>
    Object.entries(selector).every(([key, value]) => labels[key] === value)
  const pairs = [
    [one('Service', 'pawl').spec.selector, server],
    [one('Deployment', 'pawl').spec.selector.matchLabels, server],
    [one('Service', 'pawl-postgres').spec.selector, database],
    [one('StatefulSet', 'pawl-postgres').spec.selector.matchLabels, database],
    [one('NetworkPolicy', 'pawl-postgres').spec.podSelector.matchLabels, database],
  ] as const
  const worker = { 'app.kubernetes.io/name': 'pawl', 'app.kubernetes.io/component': 'worker' }
  for (const [selector, { metadata }] of pairs) {
    assert.ok(fits(selector, metadata.labels))
    assert.ok(!fits(selector, worker) && !fits(selector, firstKeys.metadata.labels))
  }
  const [{ from }] = one('NetworkPolicy', 'pawl-postgres').spec.ingress
  const [{ values }] = from[0].podSelector.matchExpressions
  assert.deepEqual(values, ['server', firstKeys.metadata.labels['app.kubernetes.io/component']])
})
