import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { eventually } from '../../../test/harness/eventually.ts'
import { lockFolder } from './folder-lock.ts'

function folderFor(t: TestContext): string {
  const root = mkdtempSync(join(tmpdir(), 'pawl-lock-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  return join(root, 'data')
}

const moduleUrl = new URL(`./folder-lock${extname(import.meta.url)}`, import.meta.url).href

/** Another process that locks the folder, reports the result, and lives until it is ended. */
async function otherProcess(
  t: TestContext,
  folder: string,
  { at = 0, within = [] }: { at?: number; within?: readonly string[] } = {},
): Promise<{ child: ChildProcess; output: string }> {
  const program = `
    import { lockFolder } from ${JSON.stringify(moduleUrl)}
    while (Date.now() < ${at}) {}
    try {
      lockFolder(${JSON.stringify(folder)})
      console.log('locked')
    } catch (error) {
      console.log(error.code + ' ' + error.details.pid)
    }
    setInterval(() => {}, 1000)`
  const [command = process.execPath, ...args] = [...within, process.execPath, '--input-type=module', '-e', program]
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  const [output] = await once(child.stdout!, 'data')
  return { child, output: String(output).trim() }
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

test('a folder that a live process holds is refused, and the refusal names host, process and start', async t => {
  const folder = folderFor(t)
  const { child, output } = await otherProcess(t, folder)
  assert.equal(output, 'locked')
  const refused = (error: { code?: string; details?: Record<string, unknown> }) => {
    const { host, pid, startedAt } = error.details!
    assert.deepEqual([error.code, host, pid], ['STORE_LOCKED', hostname(), child.pid])
    assert.match(String(startedAt), /^\d{4}-\d\d-\d\dT/)
    return true
  }
  assert.throws(() => lockFolder(folder), refused)
  assert.throws(() => lockFolder(folder), refused, 'being refused does not break the lock')
})

test('the lock of a process that was killed is free at once', async t => {
  const folder = folderFor(t)
  const { child } = await otherProcess(t, folder)
  await end(child)
  lockFolder(folder)()
})

test('a folder can be locked again once it was let go, and not twice by the same process', t => {
  const folder = folderFor(t)
  const unlock = lockFolder(folder)
  assert.throws(() => lockFolder(folder), { code: 'STORE_LOCKED' })
  assert.throws(() => lockFolder(`${folder}/../data`), { code: 'STORE_LOCKED' }, 'by whatever name')
  unlock()
  lockFolder(folder)()
})

test('a link to the folder, or to a folder above it, leads to the same lock', async t => {
  const folder = folderFor(t)
  mkdirSync(folder)
  const [link, above] = [`${folder}-link`, mkdtempSync(join(tmpdir(), 'pawl-lock-'))]
  t.after(() => rmSync(above, { recursive: true, force: true }))
  symlinkSync(folder, link)
  symlinkSync(join(folder, '..'), join(above, 'root'))
  const { output } = await otherProcess(t, folder)
  assert.equal(output, 'locked')
  assert.throws(() => lockFolder(link), { code: 'STORE_LOCKED' })
  assert.throws(() => lockFolder(join(above, 'root', 'data')), { code: 'STORE_LOCKED' })
})

function tryLocking(folder: string): (() => void) | undefined {
  try {
    return lockFolder(folder)
  } catch {
    return undefined
  }
}

const namespaces = ['unshare', '--pid', '--net', '--mount', '--uts', '--fork', '--kill-child']
const canUnshare = spawnSync(namespaces[0]!, [...namespaces.slice(1), 'true']).status === 0

test('a process in another container, with process ids of its own, cannot open the folder meanwhile', {
  skip: !canUnshare && 'needs the right to make namespaces',
}, async t => {
  const folder = folderFor(t)
  const inside = await otherProcess(t, folder, { within: namespaces })
  assert.equal(inside.output, 'locked')
  assert.throws(() => lockFolder(folder), { code: 'STORE_LOCKED' })
  await end(inside.child)
  // The kernel ends the inner processes a moment after the outer one.
  const unlock = await eventually('the lock is free', () => tryLocking(folder))
  assert.match((await otherProcess(t, folder, { within: namespaces })).output, /^STORE_LOCKED \d+$/)
  unlock()
})

// Repeated, because the fault would occur only sometimes.
test('of processes that lock the same folder at the same moment, exactly one has it', async t => {
  for (let round = 0; round < 6; round++) {
    const folder = folderFor(t)
    const at = Date.now() + 300
    const others = await Promise.all([1, 2, 3].map(() => otherProcess(t, folder, { at })))
    const winners = others.filter(({ output }) => output === 'locked')
    assert.equal(winners.length, 1, others.map(({ output }) => output).join())
    for (const { child } of others) await end(child)
  }
})
