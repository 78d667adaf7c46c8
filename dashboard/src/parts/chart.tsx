/** A chart of values over time. */
import 'uplot/dist/uPlot.min.css'
import { Paper, Text, useComputedColorScheme } from '@mantine/core'
import { useElementSize } from '@mantine/hooks'
import { useEffect, useMemo, useRef } from 'react'
import UPlot, { type AlignedData } from 'uplot'

export interface Line {
  readonly label: string
  readonly colour: string
  readonly values: readonly (number | null)[]
}

export interface ChartProps {
  readonly title: string
  readonly unit: string
  /** Seconds since 1970. */
  readonly times: readonly number[]
  readonly lines: readonly Line[]
}

const height = 190
const short = new Intl.NumberFormat(undefined, { notation: 'compact', maximumSignificantDigits: 3 })

export function Chart({ title, unit, times, lines }: ChartProps) {
  const { ref, width } = useElementSize()
  const scheme = useComputedColorScheme('light')
  const place = useRef<HTMLDivElement>(null)
  const drawn = useRef<UPlot>(undefined)
  const data = useMemo(() => [times, ...lines.map(({ values }) => values)] as AlignedData, [times, lines])
  const labels = lines.map(({ label }) => label).join()
  // biome-ignore lint/correctness/useExhaustiveDependencies: new values are put into the existing chart.
  useEffect(() => {
    if (width === 0 || place.current === null) return
    const ink = scheme === 'dark' ? '#c9c9c9' : '#495057'
    const grid = { stroke: scheme === 'dark' ? '#424242' : '#e9ecef', width: 1 }
    const chart = new UPlot(
      {
        width,
        height,
        cursor: { y: false },
        legend: { live: true },
        axes: [
          { stroke: ink, grid },
          { stroke: ink, grid, size: 64, values: (_, ticks) => ticks.map(tick => `${short.format(tick)} ${unit}`) },
        ],
        scales: { y: { range: (_, __, most) => [0, Math.max(most ?? 0, 1e-3) * 1.1] } },
        series: [
          {},
          ...lines.map(({ label, colour }) => ({
            label,
            stroke: colour,
            width: 2,
            spanGaps: false,
            points: { show: true, size: 4 },
          })),
        ],
      },
      data,
      place.current,
    )
    drawn.current = chart
    return () => chart.destroy()
  }, [width, scheme, labels, unit])
  useEffect(() => drawn.current?.setData(data), [data])
  return (
    <Paper withBorder p="sm" component="figure" m={0}>
      <Text size="sm" fw={600} component="figcaption">
        {title}
      </Text>
      <div ref={ref}>
        <div ref={place} />
      </div>
    </Paper>
  )
}
