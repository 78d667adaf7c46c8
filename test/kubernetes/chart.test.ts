/**
 * Checks the Helm chart. What it renders is kept in chart-rendered.yaml, so that it is checked everywhere; where Helm is
 * installed, a test renders it again and compares.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { Ajv } from 'ajv'
import { parse, parseAllDocuments } from 'yaml'
import { findRoot } from '../../scripts/job-schema-page.ts'
import { resolveSettings } from '../../src/config/resolve-settings.ts'
import { faultsInShape } from './client-shapes.ts'

const root = findRoot(import.meta.dirname)
const chart = join(root, 'deploy/helm/pawl')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const { chartDigest, renderChart } = (await import(pathToFileURL(join(root, 'scripts/render-chart.mjs')).href)) as {
  chartDigest(): string
  renderChart(helm?: string): string
}

// biome-ignore lint/suspicious/noExplicitAny: manifests of every kind, checked against their shapes below
type Manifest = any

const rendered = read('test/kubernetes/chart-rendered.yaml')
const [byDefault, withEveryValue] = rendered.split('# Every value set\n').map(text =>
  parseAllDocuments(text)
    .map(document => document.toJS() as Manifest)
    .filter(manifest => manifest !== null),
) as [Manifest[], Manifest[]]
const one = (manifests: Manifest[], kind: string): Manifest => manifests.find(manifest => manifest.kind === kind)
const podOf = (manifests: Manifest[]) => one(manifests, 'Deployment').spec.template.spec
const helm = process.env.HELM ?? 'helm'
const hasHelm = spawnSync(helm, ['version']).status === 0

test('what the chart renders is kept, and up to date', () => {
  assert.match(rendered, new RegExp(`^# ${chartDigest()}\n`), 'node scripts/render-chart.mjs')
})

test('Helm renders the chart as it is kept', { skip: !hasHelm && 'Helm is not installed' }, () => {
  assert.equal(renderChart(helm), rendered)
  assert.equal(spawnSync(helm, ['lint', '--strict', chart]).status, 0)
})

test('everything that the chart makes has only fields that Kubernetes knows, of their types', () => {
  for (const manifests of [byDefault, withEveryValue]) {
    assert.ok(manifests.length >= 6)
    for (const manifest of manifests)
      assert.deepEqual(faultsInShape(manifest, `V1${manifest.kind}`), [], `${manifest.kind} ${manifest.metadata.name}`)
  }
})

test('by default the chart runs the same server as the kustomization', () => {
  const base = parseAllDocuments(read('deploy/base/server.yaml')).map(document => document.toJS() as Manifest)
  const { imagePullPolicy: _, ...container } = podOf(byDefault).containers[0]
  const [wanted] = podOf(base).containers
  const sorted = (env: { name: string }[]) => env.toSorted((one, other) => one.name.localeCompare(other.name))
  assert.deepEqual({ ...container, env: sorted(container.env) }, { ...wanted, env: sorted(wanted.env) })
  assert.deepEqual({ ...podOf(byDefault), containers: [] }, { ...podOf(base), containers: [] })
  const role = parseAllDocuments(read('deploy/stages/rbac.yaml'))[0]!.toJS() as Manifest
  assert.deepEqual(one(byDefault, 'Role').rules, role.rules)
})

test('the chart has the version of the package, and its image too', () => {
  const { version } = JSON.parse(read('package.json')) as { version: string }
  const about = parse(read('deploy/helm/pawl/Chart.yaml')) as { version: string; appVersion: string }
  assert.deepEqual([about.version, about.appVersion], [version, version])
  assert.equal(podOf(byDefault).containers[0].image, `pawl:${version}`)
})

test('the values of the chart fit their schema, and a misspelled value is refused', () => {
  const validate = new Ajv({ strict: false }).compile(JSON.parse(read('deploy/helm/pawl/values.schema.json')))
  for (const path of ['deploy/helm/pawl/values.yaml', 'test/kubernetes/chart-values.yaml'])
    assert.ok(validate(parse(read(path))), JSON.stringify(validate.errors))
  assert.ok(!validate({ replica: 3 }))
  assert.ok(!validate({ stages: { images: 'debian' } }))
})

test('every value that a template reads is in values.yaml, and every value there is read', () => {
  const folder = join(chart, 'templates')
  const templates = readdirSync(folder).map(name => readFileSync(join(folder, name), 'utf8'))
  const used = new Set(templates.flatMap(text => [...text.matchAll(/\.Values\.([\w.]+)/g)].map(match => match[1]!)))
  const values = parse(read('deploy/helm/pawl/values.yaml')) as Record<string, unknown>
  const groups = ['image', 'database', 'stages', 'service']
  const known = Object.entries(values).flatMap(([key, value]) =>
    groups.includes(key) ? Object.keys(value as object).map(inner => `${key}.${inner}`) : [key],
  )
  assert.deepEqual([...used].sort(), known.sort())
})

test('every variable that the chart sets is a setting of Pawl, with a value that it accepts', () => {
  const { env } = podOf(withEveryValue).containers[0] as { env: { name: string; value?: string }[] }
  const given = Object.fromEntries(env.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]])))
  const { values } = resolveSettings({ flags: {}, env: given, file: undefined })
  assert.deepEqual(
    [
      values.kubernetes,
      values.k8sImages,
      values.k8sSecrets,
      values.k8sServiceAccounts,
      values.s3Buckets,
      values.dialects,
    ],
    [
      true,
      ['registry.example.com/*', 'debian'],
      ['s3', 'api'],
      ['reader'],
      ['letters', 'results'],
      ['falconeri', 'jsm'],
    ],
  )
  const names = Object.keys(given).filter(name => name.startsWith('PAWL_'))
  const settings = JSON.stringify(Object.keys(values)).toLowerCase()
  const unknown = names.filter(name => !settings.includes(name.replace('PAWL_', '').replaceAll('_', '').toLowerCase()))
  assert.deepEqual(unknown, [])
})
