// Finds the contenders: one file in contenders/ for each, named after its package (`-tuned`: with other settings).

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import type { Cluster } from '../test/harness/cluster.ts'
import type { Contender, OpenContender } from './contender.ts'

export interface Entrant {
  name: string
  version: string
  contender: Contender
}

export interface Absence {
  name: string
  why: string
}

const here = import.meta.dirname
const ours = 'pawl'

/** Pawl first, then its peers by name. */
export function contenderNames(): string[] {
  const names = readdirSync(join(here, 'contenders')).filter(file => file.endsWith('.ts'))
  const peers = names.map(file => file.slice(0, -'.ts'.length)).filter(name => name !== ours)
  return existsSync(join(here, 'contenders', `${ours}.ts`)) ? [ours, ...peers.sort()] : peers.sort()
}

/** Opens each contender in a database of its own. Returns the reasons of those that cannot run. */
export async function openEntrants(cluster: Cluster, names: string[]): Promise<[Entrant[], Absence[]]> {
  const entrants: Entrant[] = []
  const absences: Absence[] = []
  for (const name of names) {
    try {
      const { version, engines } = manifestOf(name)
      if (!nodeSatisfies(engines?.node)) throw new Error(`needs Node ${engines?.node}, this is ${process.version}`)
      const { openContender }: { openContender: OpenContender } = await import(`./contenders/${name}.ts`)
      const contender = await openContender({ databaseUrl: await createDatabase(cluster, name) })
      entrants.push({ name, version, contender })
    } catch (error) {
      absences.push({ name, why: reasonOf(error) })
    }
  }
  return [entrants, absences]
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function manifestOf(name: string): { version: string; engines?: { node?: string } } {
  const folder = name.startsWith(ours) ? join(here, '..') : join(here, 'node_modules', name.replace(/-tuned$/, ''))
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
}

/** Understands `>=22.18.0`, the only form that is used here. Any other is accepted. */
function nodeSatisfies(range: string | undefined): boolean {
  const wanted = /^>=\s*(\d+)(?:\.(\d+))?(?:\.(\d+))?$/.exec(range ?? '')
  if (wanted === null) return true
  const have = process.versions.node.split('.').map(Number)
  for (const [index, part] of wanted.slice(1).entries()) {
    const difference = have[index]! - Number(part ?? 0)
    if (difference !== 0) return difference > 0
  }
  return true
}

export async function createDatabase(cluster: Cluster, name: string): Promise<string> {
  const client = await openConnection(cluster.url)
  try {
    await client.query(`create database ${client.escapeIdentifier(`bench-${name}`)}`)
  } finally {
    await client.end()
  }
  return databaseUrl(cluster, name)
}

export function databaseUrl(cluster: Cluster, name: string): string {
  const url = new URL(cluster.url)
  url.pathname = `/bench-${name}`
  return url.href
}

/** The server may end the connection. Without a listener, the error would end the bench. */
export async function openConnection(url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  return client
}
