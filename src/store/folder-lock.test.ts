import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { lockFolder } from './folder-lock.ts'

function folderFor(t: TestContext): string {
  const root = mkdtempSync(join(tmpdir(), 'pawl-lock-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  return join(root, 'data')
}

const claimsOn = (folder: string) => readdirSync(`${folder}.lock`)
const moduleUrl = new URL(`./folder-lock${extname(import.meta.url)}`, import.meta.url).href

/** Another process that locks the folder at the moment given, says how it went, and lives until it is ended. */
async function otherProcess(t: TestContext, folder: string, at = 0): Promise<{ child: ChildProcess; said: string }> {
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
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  const [said] = await once(child.stdout!, 'data')
  return { child, said: String(said).trim() }
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

test('a folder that a live process holds is refused, and the refusal names the process', async t => {
  const folder = folderFor(t)
  const { child, said } = await otherProcess(t, folder)
  assert.equal(said, 'locked')
  assert.throws(() => lockFolder(folder), { code: 'STORE_LOCKED', details: { folder, pid: child.pid } })
  assert.throws(() => lockFolder(folder), { code: 'STORE_LOCKED' }, 'being refused does not break the lock')
})

test('the lock of a process that was killed is taken over', async t => {
  const folder = folderFor(t)
  const { child } = await otherProcess(t, folder)
  await end(child)
  assert.match(claimsOn(folder).join(), new RegExp(`^${child.pid}-`), 'it left its claim behind')
  const unlock = lockFolder(folder)
  assert.match(claimsOn(folder).join(), new RegExp(`^${process.pid}-\\w+$`), 'now only ours is there')
  unlock()
})

test('a lock whose number is used again by another process does not count', async t => {
  const folder = folderFor(t)
  const { child } = await otherProcess(t, folderFor(t))
  mkdirSync(`${folder}.lock`)
  writeFileSync(`${folder}.lock/${child.pid}-12345`, '')
  lockFolder(folder)()
})

test('a folder can be locked again once it was let go, and not twice by the same process', async t => {
  const folder = folderFor(t)
  const unlock = lockFolder(folder)
  assert.throws(() => lockFolder(folder), { code: 'STORE_LOCKED', details: { folder, pid: process.pid } })
  assert.throws(() => lockFolder(`${folder}/../data`), { code: 'STORE_LOCKED' }, 'by whatever name')
  unlock()
  assert.deepEqual(claimsOn(folder), [])
  lockFolder(folder)()
})

// Over and over, for what must not happen happens only sometimes.
test('of processes that find the same dead lock at the same moment, exactly one takes it over', async t => {
  for (let round = 0; round < 6; round++) {
    const folder = folderFor(t)
    mkdirSync(`${folder}.lock`)
    writeFileSync(`${folder}.lock/999999999-1`, '')
    const at = Date.now() + 300
    const others = await Promise.all([1, 2, 3].map(() => otherProcess(t, folder, at)))
    const winners = others.filter(({ said }) => said === 'locked')
    assert.equal(winners.length, 1, others.map(({ said }) => said).join())
    const refusals = others.filter(({ said }) => /^STORE_LOCKED \d+$/.test(said))
    assert.equal(refusals.length, 2)
    for (const { child } of others) await end(child)
  }
})
