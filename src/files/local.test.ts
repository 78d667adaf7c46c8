import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { stagingOf } from '../kernel/datum.ts'
import { isWorthRetry, type Problem } from '../kernel/problem.ts'
import { openLocalFiles } from './local.ts'
import { localProblem } from './local-file.ts'
import { joinUri, uriOf } from './uri.ts'

const files = openLocalFiles()

async function inFolder(use: (folder: string, uri: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'pawl-local-'))
  try {
    await use(folder, uriOf({ scheme: 'file', bucket: '', path: `${folder.slice(1)}/` }))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function paths(uri: string, deep = false): Promise<string[]> {
  const found: string[] = []
  for await (const page of files.list(uri, { deep })) found.push(...page.map(({ path }) => path))
  return found
}

test('a link to a file of the same folder is that file; one that leads out is refused by its name', () =>
  inFolder(async (folder, uri) => {
    await mkdir(join(folder, 'in/sub'), { recursive: true })
    await writeFile(join(folder, 'secret'), 'secret')
    await writeFile(join(folder, 'in/sub/x'), 'x')
    await symlink('sub/x', join(folder, 'in/inside'))
    const input = joinUri(uri, 'in/')
    assert.deepEqual(await paths(input), ['inside', 'sub/'])
    assert.deepEqual(await paths(input, true), ['inside', 'sub/x'])
    const bad: [string, string, RegExp][] = [
      ['../secret', 'out', /"out".*outside the folder/],
      ['/etc/passwd', 'far', /"far".*outside the folder/],
      ['nothing', 'nowhere', /"nowhere".*to a missing file/],
      ['round', 'round', /"round".*to a missing file/],
      ['.', 'loop', /"loop".*to a folder/],
      ['sub', 'folder', /"folder".*to a folder/],
    ]
    for (const [target, name, message] of bad) {
      await symlink(target, join(folder, 'in', name))
      for (const deep of [false, true]) await assert.rejects(paths(input, deep), { code: 'NAME_REFUSED', message })
      await rm(join(folder, 'in', name))
    }
  }))

test('a name that is not UTF-8 is refused, and its bytes are shown', () =>
  inFolder(async (folder, uri) => {
    await writeFile(Buffer.concat([Buffer.from(`${folder}/caf`), Buffer.from([0xe9])]), 'x')
    await assert.rejects(paths(uri), { code: 'NAME_REFUSED', message: /caf\\\\xe9.*not UTF-8/ })
  }))

test('what is neither file nor folder is refused by its name, and never waited for', () =>
  inFolder(async (folder, uri) => {
    execFileSync('mkfifo', [join(folder, 'pipe')])
    await assert.rejects(paths(uri), { code: 'NAME_REFUSED', message: /"pipe".*neither a file nor a folder/ })
    await assert.rejects(files.open(joinUri(uri, 'pipe')), { code: 'NAME_REFUSED' })
    assert.equal(await files.stat(joinUri(uri, 'pipe')), undefined)
  }))

test('a folder that does not exist is not found', () =>
  inFolder(async (_, uri) => {
    await assert.rejects(paths(joinUri(uri, 'none/')), { code: 'FILE_NOT_FOUND', message: /none/ })
  }))

test('a name longer than the system takes is refused, and so is one that is a file and a folder', () =>
  inFolder(async (folder, uri) => {
    await writeFile(join(folder, 'a'), 'a')
    await mkdir(join(folder, 'd/e'), { recursive: true })
    const refused = { code: 'NAME_REFUSED' }
    await assert.rejects(files.put(join(folder, 'a'), joinUri(uri, 'é'.repeat(128))), refused)
    await assert.rejects(files.put(join(folder, 'a'), joinUri(uri, 'a/b')), refused)
    await assert.rejects(files.put(join(folder, 'a'), joinUri(uri, 'd')), refused)
    const kept = await files.put(join(folder, 'a'), joinUri(uri, 'é'.repeat(127)))
    await assert.rejects(files.promote(joinUri(uri, 'a'), joinUri(uri, 'd'), kept), refused)
    assert.deepEqual(await readdir(folder), ['a', 'd', 'é'.repeat(127)])
  }))

test('a link is never written through: it is replaced', () =>
  inFolder(async (folder, uri) => {
    await writeFile(join(folder, 'precious'), 'precious')
    await writeFile(join(folder, 'new'), 'new')
    for (const name of ['put', 'promoted']) await symlink('precious', join(folder, name))
    const kept = await files.put(join(folder, 'new'), joinUri(uri, 'put'))
    await files.promote(joinUri(uri, 'new'), joinUri(uri, 'promoted'), kept)
    const texts = ['precious', 'put', 'promoted'].map(name => readFile(join(folder, name), 'utf8'))
    assert.deepEqual(await Promise.all(texts), ['precious', 'new', 'new'])
  }))

test('what was half written when a process died is not listed among files, and can be swept with the uploads', () =>
  inFolder(async (folder, uri) => {
    const staging = stagingOf(uri, 't', 1)
    await mkdir(join(folder, '.pawl/t/1'), { recursive: true })
    for (const name of ['x', '.pawl-unfinished-1', '.pawl/t/1/.pawl-unfinished-2'])
      await writeFile(join(folder, name), 'x')
    assert.deepEqual(await paths(uri), ['x'])
    assert.deepEqual(await paths(staging, true), ['.pawl-unfinished-2'])
  }))

test('folders of uploads go with their last file, also while others upload beside', () =>
  inFolder(async (folder, uri) => {
    await writeFile(join(folder, 'x'), 'x')
    const once = async (task: string) => {
      for (let epoch = 1; epoch <= 300; epoch += 1) {
        const staged = joinUri(stagingOf(uri, task, epoch), 'deep/x')
        await files.put(join(folder, 'x'), staged)
        await files.remove([staged])
      }
    }
    await Promise.all(['a', 'b', 'c', 'd'].map(once))
    assert.deepEqual(await readdir(folder), ['x'])
  }))

test('the version of a file differs when it is another, even of the same size and date', () =>
  inFolder(async (folder, uri) => {
    const versions = new Set<string | undefined>()
    for (const text of ['one', 'two']) {
      await writeFile(join(folder, 'new'), text)
      await files.put(join(folder, 'new'), joinUri(uri, 'x'))
      await utimes(join(folder, 'x'), 1, 1)
      versions.add((await files.stat(joinUri(uri, 'x')))?.version)
    }
    assert.equal(versions.size, 2)
  }))

test('a full disk and a denied folder are worth a retry, a name that is too long is not', () => {
  const failed = (code: string) =>
    localProblem(Object.assign(new Error(`${code}: no`), { code, syscall: 'write' }), 'x') as Problem
  assert.deepEqual(
    ['ENOSPC', 'EDQUOT', 'EACCES', 'EROFS', 'EIO', 'ENAMETOOLONG', 'ENOENT'].map(code => failed(code).code),
    ['DISK_FULL', 'DISK_FULL', 'FILES_DENIED', 'FILES_DENIED', 'FILES_UNAVAILABLE', 'NAME_REFUSED', 'FILE_NOT_FOUND'],
  )
  assert.deepEqual(
    ['ENOSPC', 'EACCES', 'EIO', 'ENAMETOOLONG'].map(code => isWorthRetry(failed(code))),
    [true, true, true, false],
  )
  const bug = new TypeError('a bug')
  assert.equal(localProblem(bug, 'x'), bug)
})
