export function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

export function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}

export function milliseconds(value: number): string {
  return `${value.toFixed(1)} ms`
}
