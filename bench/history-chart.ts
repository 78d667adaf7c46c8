// One small line chart per figure, from the oldest run to the newest. A figure that got worse is marked.

import { escapeXml } from './chart.ts'
import type { Figure } from './contender.ts'

export interface HistoryRecord {
  /** The measured commit; with `+` if files had uncommitted changes. */
  commit: string
  date: string
  command: string
  processor: string
  node: string
  postgres: string
  fsyncMs: number
  figures: Figure[]
}

const columns = 3
const cell = { width: 330, height: 104 }
const plot = { left: 12, top: 44, width: 306, height: 44 }
const head = 40
/** Runs of one commit differ by about this much. */
const worseShare = 0.15

interface Point {
  commit: string
  processor: string
  value: number
}

export function historyChart(records: readonly HistoryRecord[]): string {
  const figures = new Map<string, { figure: Figure; points: Point[] }>()
  for (const { commit, processor, figures: measured } of records) {
    for (const figure of measured) {
      const { points } = figures.get(figure.name) ?? { points: [] }
      figures.set(figure.name, { figure, points: [...points, { commit, processor, value: figure.value }] })
    }
  }
  const cells = [...figures.values()].map(({ figure, points }, index) => {
    const x = (index % columns) * cell.width
    const y = head + Math.floor(index / columns) * cell.height
    return `<g transform="translate(${x} ${y})">${drawFigure(figure, points)}</g>`
  })
  const width = columns * cell.width
  const height = head + Math.ceil(cells.length / columns) * cell.height + 8
  const title = `Figures of ${records.length} runs, from ${records[0]?.commit ?? '–'} to ${records.at(-1)?.commit ?? '–'}`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeXml(title)}">
<style>
  text { font: 12px system-ui, sans-serif; fill: #1f2328 }
  .head { font-weight: 600; font-size: 16px }
  .name { font-weight: 600 }
  .worse { fill: #cf222e }
  polyline { fill: none; stroke: #2f81f7; stroke-width: 2 }
  @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .worse { fill: #ff7b72 } }
</style>
<text x="12" y="24" class="head">${escapeXml(title)}</text>
${cells.join('\n')}
</svg>
`
}

function drawFigure(figure: Figure, points: readonly Point[]): string {
  const { name, unit, better } = figure
  const values = points.map(({ value }) => value)
  const most = Math.max(...values, Number.MIN_VALUE)
  // The scale begins at zero, so that the height of a drop shows its share.
  const place = (value: number, index: number) => {
    const x = plot.left + (points.length === 1 ? plot.width : (plot.width * index) / (points.length - 1))
    return [x, plot.top + plot.height * (1 - value / most)].map(part => part.toFixed(1)) as [string, string]
  }
  const places = values.map(place)
  const marks = places.map(([x, y], index) => {
    const { commit, value } = points[index]!
    const worse = isWorse(figure, points[index - 1], points[index]!)
    const label = `<title>${escapeXml(`${commit}: ${show(value)} ${unit}`)}</title>`
    return `<circle cx="${x}" cy="${y}" r="${worse ? 4 : 2.5}" fill="${worse ? '#cf222e' : '#2f81f7'}">${label}</circle>`
  })
  const now = values.at(-1)!
  const before = values.at(-2)
  const change = before === undefined || before === 0 ? '' : ` (${signed(100 * (now / before - 1))} %)`
  const worse = isWorse(figure, points.at(-2), points.at(-1)!)
  return [
    `<text x="${plot.left}" y="16" class="name">${escapeXml(name)}</text>`,
    `<text x="${plot.left}" y="33"${worse ? ' class="worse"' : ''}>${escapeXml(`${show(now)} ${unit}${change}, ${better} is better`)}</text>`,
    `<polyline points="${places.map(pair => pair.join(',')).join(' ')}"/>`,
    ...marks,
  ].join('')
}

/** Ratios are comparable between machines, other figures only on the same one. */
function isWorse({ unit, better }: Figure, before: Point | undefined, now: Point): boolean {
  if (before === undefined || (unit !== 'x' && unit !== '%' && before.processor !== now.processor)) return false
  return better === 'higher' ? now.value < before.value * (1 - worseShare) : now.value > before.value * (1 + worseShare)
}

const signed = (percent: number) => `${percent >= 0 ? '+' : ''}${percent.toFixed(0)}`
const show = (value: number) => (value >= 1000 ? Math.round(value).toLocaleString('en-US') : String(value))
