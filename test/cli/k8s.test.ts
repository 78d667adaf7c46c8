import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { cli } from '../harness/cli.ts'

const bounded = { timeout: 600_000 }

test(
  'pawl k8s render --server prints what a cluster needs for Pawl, for kubectl and for machines',
  bounded,
  async t => {
    const pawl = await cli(t)
    const { code, out, err } = await pawl.run(['k8s', 'render', '--server'])
    assert.equal(code, 0, err)
    const printed = parseAllDocuments(out).map(document => document.toJS())
    assert.deepEqual(printed.map(({ kind }) => kind).sort(), [
      'Deployment',
      'Namespace',
      'Namespace',
      'NetworkPolicy',
      'NetworkPolicy',
      'Role',
      'RoleBinding',
      'Secret',
      'Service',
      'Service',
      'ServiceAccount',
      'StatefulSet',
    ])
    const { kind, items } = (await pawl.run(['k8s', 'render', '--server', '--json'])).json() as Record<string, unknown>
    assert.deepEqual([kind, items], ['List', printed])
  },
)

test('pawl k8s render wants a job or --server, and a job with a stage for Kubernetes', bounded, async t => {
  const pawl = await cli(t)
  for (const words of [[], ['job.yaml', '--server']]) {
    const { code, err } = await pawl.run(['k8s', 'render', ...words])
    assert.deepEqual(
      [code, err],
      [2, 'pawl: pawl k8s render requires either SPEC, the file with a job spec, or --server.\n'],
    )
  }
  await writeFile(join(pawl.folder, 'job.yaml'), 'name: x\nstages: [{ name: a, task: t }]\n')
  const { code, err } = await pawl.run(['k8s', 'render', 'job.yaml'])
  assert.deepEqual([code, err], [2, 'pawl: job.yaml: none of its stages runs in Kubernetes\n'])
})
