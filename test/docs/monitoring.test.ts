/** docs/monitoring.md, docs/grafana.json and docs/alerts.yaml, compared with the metrics of a running server. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { parse } from 'yaml'
import { findRoot } from '../../scripts/job-schema-page.ts'
import { countEvents } from '../../src/babysitter/chores.ts'
import { defineTask } from '../../src/worker/define-task.ts'
import { startWorker } from '../../src/worker/worker.ts'
import { eventually } from '../harness/eventually.ts'
import { served } from '../harness/served.ts'

const docs = join(findRoot(import.meta.dirname), 'docs')
const read = (name: string) => readFileSync(join(docs, name), 'utf8')

/** The metrics of a server that has run a task: each series with its labels. */
async function metricsOf(t: TestContext): Promise<{ text: string; labels: Map<string, Set<string>> }> {
  const run = await served(t)
  const done = defineTask({ type: 'done', handler: () => 1 })
  const worker = startWorker(run.engine, [done])
  t.after(() => worker.stop())
  await (await run.engine.enqueue(done, null)).result()
  await run.engine.enqueue('waits', null)
  await run.request('/v1/jobs')
  const text = await eventually('the task is counted', async () => {
    await countEvents.run(run.engine.context)
    const scraped = await (await run.request('/metrics')).text()
    return scraped.includes('pawl_ended_total{') && scraped.includes('pawl_queue_due{') && scraped
  })
  // Prometheus adds `instance` and `job` to every series.
  const labels = new Map<string, Set<string>>()
  for (const [, name, inner = ''] of text.matchAll(/^(pawl_\w+)(?:\{(.*)\})? \S+$/gm)) {
    const known = labels.get(name!) ?? new Set(['instance', 'job'])
    for (const [, label] of inner.matchAll(/(\w+)="/g)) known.add(label!)
    labels.set(name!, known)
  }
  for (const [, name] of text.matchAll(/^# TYPE (\w+) (?:counter|gauge)$/gm)) {
    if (!labels.has(name!)) labels.set(name!, new Set(['instance', 'job', 'type', 'queue']))
  }
  return { text, labels }
}

/** The faults of an expression: metrics that no server has, and labels that their series have not. */
function faultsIn(expr: string, known: Map<string, Set<string>>): string[] {
  const names = [...expr.matchAll(/\bpawl_\w+/g)].map(([name]) => name)
  const unknown = names.filter(name => !known.has(name)).map(name => `no metric ${name}`)
  const used = [
    ...[...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list]) => list!.split(/,\s*/)),
    ...[...expr.matchAll(/[{,]\s*(\w+)=~?"/g)].map(([, label]) => label!),
  ]
  const labels = new Set(names.flatMap(name => [...(known.get(name) ?? [])]))
  return [...unknown, ...used.filter(label => !labels.has(label)).map(label => `no label ${label}`)]
}

interface Panel {
  readonly id: number
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly datasource: { readonly uid: string }
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[]
}

test('every panel of the Grafana dashboard shows metrics and labels that servers have', async t => {
  const { labels } = await metricsOf(t)
  const { panels } = JSON.parse(read('grafana.json')) as { panels: readonly Panel[] }
  assert.ok(panels.length > 10)
  for (const { title, targets } of panels) {
    assert.ok(targets.length > 0, title)
    for (const { expr, legendFormat } of targets) {
      assert.deepEqual(faultsIn(expr, labels), [], `${title}: ${expr}`)
      for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
        assert.match(expr, new RegExp(`by \\([^)]*\\b${label}\\b`), `${title} loses the label ${label}`)
    }
  }
})

test('the panels of the Grafana dashboard do not overlap, and take the data source that the reader chooses', () => {
  const { panels, templating } = JSON.parse(read('grafana.json')) as {
    panels: readonly Panel[]
    templating: { list: readonly { name: string; type: string }[] }
  }
  assert.deepEqual(
    templating.list.map(({ name, type }) => [name, type]),
    [['datasource', 'datasource']],
  )
  const cells = new Set<string>()
  for (const { title, datasource, gridPos } of panels) {
    assert.match(datasource.uid, /^\$\{datasource\}$/)
    assert.ok(gridPos.x + gridPos.w <= 24, title)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.ok(!cells.has(`${x} ${y}`), `${title} lies on another panel`)
        cells.add(`${x} ${y}`)
      }
  }
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
})

test('every alert is about metrics and labels that servers have, and has a severity and a summary', async t => {
  const { labels } = await metricsOf(t)
  const { groups } = parse(read('alerts.yaml')) as {
    groups: {
      rules: { alert: string; expr: string; labels: { severity: string }; annotations: { summary: string } }[]
    }[]
  }
  for (const rule of groups.flatMap(({ rules }) => rules)) {
    assert.deepEqual(faultsIn(rule.expr, labels), [], rule.alert)
    assert.ok(rule.labels.severity && rule.annotations.summary, rule.alert)
    for (const [, label] of rule.annotations.summary.matchAll(/\$labels\.(\w+)/g))
      assert.match(rule.expr, new RegExp(`by \\(.*\\b${label}\\b`), rule.alert)
  }
})

test('docs/monitoring.md lists every metric with its kind and meaning', async t => {
  const { text } = await metricsOf(t)
  const wanted = [...text.matchAll(/^# HELP (\w+) (.+)\n# TYPE \w+ (\w+)$/gm)].map(([, name, help, kind]) => {
    const scope = help!.endsWith('Covers all processes.') ? 'database' : 'process'
    return `| \`${name}\` | ${kind} | ${scope} | ${help!.replace(/ Covers .+$/, '')} |`
  })
  const rows = read('monitoring.md')
    .split('\n')
    .filter(line => line.startsWith('| `pawl_'))
  assert.deepEqual(rows, wanted)
})
