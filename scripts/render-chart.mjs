// Renders the Helm chart, with its defaults and with every value set, into test/kubernetes/chart-rendered.yaml, which a
// test checks also where Helm is not installed. Run it after a change of deploy/helm: node scripts/render-chart.mjs
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const chart = join(root, 'deploy/helm/pawl')
const everyValue = join(root, 'test/kubernetes/chart-values.yaml')

/** Identifies the chart and the values that were rendered. */
export function chartDigest() {
  const files = readdirSync(chart, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath ?? entry.path, entry.name))
  const hash = createHash('sha256')
  for (const path of [...files.sort(), everyValue]) hash.update(readFileSync(path)).update('\0')
  return hash.digest('hex')
}

export function renderChart(helm = 'helm') {
  const render = (...flags) => {
    const args = ['template', 'pawl', chart, '--namespace', 'pawl', '--kube-version', '1.34.0', ...flags]
    return execFileSync(helm, args, { encoding: 'utf8' })
  }
  const parts = ['# Defaults', render(), '# Every value set', render('--values', everyValue)]
  return `# ${chartDigest()}\n${parts.join('\n')}`
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  writeFileSync(join(root, 'test/kubernetes/chart-rendered.yaml'), renderChart(process.env.HELM))
}
