// The figures of every full run, in history.json, and a chart of them.

import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type HistoryRecord, historyChart } from './history-chart.ts'
import type { Run } from './report.ts'

export async function recordRun(folder: string, run: Run): Promise<void> {
  const record: HistoryRecord = {
    commit: await currentCommit(),
    date: new Date().toISOString(),
    command: run.command,
    processor: `${cpus()[0]?.model ?? 'unknown'}, ${cpus().length} cores`,
    node: process.version,
    postgres: run.postgres.version,
    fsyncMs: rounded(run.fsync.p50),
    figures: run.figures.map(figure => ({ ...figure, value: rounded(figure.value) })),
  }
  const records = [...(await readHistory(folder)), record]
  await writeFile(join(folder, 'history.json'), `${JSON.stringify(records, null, 2)}\n`)
}

export async function drawHistory(folder: string): Promise<void> {
  await writeFile(join(folder, 'history.svg'), historyChart(await readHistory(folder)))
}

async function readHistory(folder: string): Promise<HistoryRecord[]> {
  const file = join(folder, 'history.json')
  return existsSync(file) ? JSON.parse(await readFile(file, 'utf8')) : []
}

async function currentCommit(): Promise<string> {
  const git = async (...args: string[]) =>
    (await promisify(execFile)('git', args, { cwd: import.meta.dirname })).stdout.trim()
  try {
    // The results of the run itself do not count as changes.
    const changed = await git('status', '--porcelain', '--', ':/src', ':/bench/*.ts', ':/package-lock.json')
    return `${await git('rev-parse', '--short', 'HEAD')}${changed === '' ? '' : '+'}`
  } catch {
    return 'unknown'
  }
}

const rounded = (value: number) => Number(value.toPrecision(4))
