// A bar chart as SVG, readable on light and dark pages: the colours of text follow the reader's setting.

export interface Bar {
  label: string
  value: number
  /** The label beside the bar. */
  text: string
}

export interface Group {
  title: string
  /** Each group has a scale of its own, because the units differ. */
  bars: Bar[]
}

const width = 760
const left = 150
const right = 110
const barHeight = 22
const barGap = 6
const titleHeight = 40
const colours = ['#2f81f7', '#8b949e', '#bc8cff', '#d29922', '#3fb950', '#f778ba']

export function barChart(title: string, groups: Group[]): string {
  const labels = [...new Set(groups.flatMap(({ bars }) => bars.map(({ label }) => label)))]
  const colourOf = (label: string) => colours[labels.indexOf(label) % colours.length]!
  const parts: string[] = []
  let y = 36
  for (const group of groups) {
    y += titleHeight
    parts.push(text(16, y - 12, group.title, 'class="title"'))
    const most = Math.max(...group.bars.map(({ value }) => value))
    for (const bar of group.bars) {
      parts.push(...drawBar(bar, y, most, colourOf(bar.label)))
      y += barHeight + barGap
    }
  }
  const height = y + 12
  const frame = `viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeXml(title)}"`
  return `<svg xmlns="http://www.w3.org/2000/svg" ${frame}>
<style>
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-weight: 600; font-size: 14px }
  .head { font-weight: 600; font-size: 17px }
  @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } }
</style>
${text(16, 28, title, 'class="head"')}
${parts.join('\n')}
</svg>
`
}

function drawBar({ label, value, text: figure }: Bar, y: number, most: number, colour: string): string[] {
  const length = Math.max(2, Math.round(((width - left - right) * value) / most))
  const middle = y + barHeight / 2 + 5
  return [
    text(left - 10, middle, label, 'text-anchor="end"'),
    `<rect x="${left}" y="${y}" width="${length}" height="${barHeight}" rx="3" fill="${colour}"/>`,
    text(left + length + 8, middle, figure, ''),
  ]
}

function text(x: number, y: number, content: string, attributes: string): string {
  return `<text x="${x}" y="${y}" ${attributes}>${escapeXml(content)}</text>`
}

export function escapeXml(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
