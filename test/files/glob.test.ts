import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { escapeGlob, globError, readGlob } from '../../src/files/glob.ts'
import { pathsFound, treeOf } from './tree.ts'

const found = (glob: string, paths: readonly string[]) => pathsFound(glob, treeOf(paths))

test('a glob finds what it says, files and folders at its depth', async () => {
  const tree = ['2024-01/a.csv', '2024-01/b/c.csv', '2024-02/a.txt', '2025-01/a.csv', 'note.txt', '.dot', 'top.csv']
  const finds: [string, string[]][] = [
    ['/*', ['.dot', '2024-01/', '2024-02/', '2025-01/', 'note.txt', 'top.csv']],
    ['/*.txt', ['note.txt']],
    ['/2024-*', ['2024-01/', '2024-02/']],
    ['/2024-*/*', ['2024-01/a.csv', '2024-01/b/', '2024-02/a.txt']],
    ['/2024-*/*.csv', ['2024-01/a.csv']],
    ['/202[45]-01/a.*', ['2024-01/a.csv', '2025-01/a.csv']],
    ['/202[!4]-01/*', ['2025-01/a.csv']],
    ['/{note,top}.*', ['note.txt', 'top.csv']],
    ['/????.txt', ['note.txt']],
    ['/**', ['.dot', '2024-01/a.csv', '2024-01/b/c.csv', '2024-02/a.txt', '2025-01/a.csv', 'note.txt', 'top.csv']],
    ['/**/*.csv', ['2024-01/a.csv', '2024-01/b/c.csv', '2025-01/a.csv', 'top.csv']],
    ['/2024-*/**/*.csv', ['2024-01/a.csv', '2024-01/b/c.csv']],
    ['/**/b/*', ['2024-01/b/c.csv']],
    ['/note.txt', ['note.txt']],
    ['/2024-01', ['2024-01/']],
    ['/2024-01/b', ['2024-01/b/']],
    ['/none', []],
    ['/note.txt/*', []],
  ]
  for (const [glob, paths] of finds) {
    assert.equal(globError(glob), undefined, glob)
    assert.deepEqual(await found(glob, tree), paths, glob)
  }
})

test('names with parentheses, quotes and signs are found as they are written', async () => {
  const names = ['report (1).txt', 'a+b', 'a|b', '!important', '@home', 'say "hi"', '$x^y', 'a,b', '~', '#1']
  for (const name of names) {
    assert.deepEqual(await found(`/${name}`, names), [name])
    assert.deepEqual(await found(`/${name}*`, names), [name])
    assert.deepEqual(await found(`/**/${name}`, names), [name])
  }
})

test('any name can be found by escaping it, and nothing else is', () => {
  const char = fc.oneof(
    fc.constantFrom(...'\\*?[]{}()|^$+"!@.,- \n~#\'<>&'),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  )
  const name = fc
    .array(char, { minLength: 1, maxLength: 6 })
    .map(chars => chars.join('').replaceAll('/', '').replaceAll('\0', ''))
    .filter(name => name !== '' && name !== '.' && name !== '..')
  fc.assert(
    fc.property(name, name, (name, other) => {
      const glob = `/${escapeGlob(name)}`
      assert.equal(globError(glob), undefined)
      assert.equal(readGlob(glob).levels[0]!.matches(name), true)
      assert.equal(readGlob(glob).levels[0]!.matches(other), other === name)
      assert.equal(readGlob(`/x*${escapeGlob(name)}`).levels[0]!.matches(`x${name}`), true, 'beside a *')
      assert.equal(readGlob(`/**/${escapeGlob(name)}`).rest!(`d/${name}`), true, 'below a **')
      assert.equal(readGlob(`/**/${escapeGlob(name)}`).rest!(`d/${other}`), other === name)
    }),
    { numRuns: 2000, examples: [['{..\\', '\\']] },
  )
})

test('a star finds names with line breaks and dots in front, in folders of any name', async () => {
  const paths = ['.a/x\ny', '\n/z', ' /q']
  assert.deepEqual(await found('/*/*', paths), ['\n/z', ' /q', '.a/x\ny'])
  assert.deepEqual(await found('/**', paths), ['\n/z', ' /q', '.a/x\ny'])
  assert.deepEqual(await found('/**/*', paths), ['\n/z', ' /q', '.a/x\ny'])
})

test('a glob takes time linear to the name, whatever the glob', () => {
  const name = 'a'.repeat(200)
  const globs = ['/*a*a*a*a*a*a*b', `/${'*a'.repeat(100)}b`, `/${'{a,aa}'.repeat(100)}b`, `/${'?*'.repeat(100)}b`]
  for (const glob of globs) {
    assert.equal(globError(glob), undefined, glob)
    assert.equal(readGlob(glob).levels[0]!.matches(name), false, glob)
  }
  const deep = `${'a/'.repeat(100)}a`
  for (const glob of [`/${'**/'.repeat(50)}b`, `/${'**/*/'.repeat(50)}*b`]) {
    assert.equal(readGlob(glob).rest!(deep), false, glob)
  }
})

test('brackets, braces and signs mean what they say', async () => {
  const names = ['a-c', 'b', ']', '^', '!x', '{a}', 'a,b', 'x^y', 'ab', 'a', '[']
  const finds: [string, string[]][] = [
    ['/[]a]', [']', 'a']],
    ['/[^!-~]', []],
    ['/[x^]*', ['^', 'x^y']],
    ['/[a-c]', ['a', 'b']],
    ['/[!-a]', ['[', ']', '^', 'b']],
    ['/[a-]-[a-c]', ['a-c']],
    ['/[[]', ['[']],
    ['/\\{a\\}', ['{a}']],
    ['/{a,b}', ['a', 'b']],
    ['/{a,{b,ab}}', ['a', 'ab', 'b']],
    ['/a,b', ['a,b']],
    ['/a{,b}', ['a', 'ab']],
  ]
  for (const [glob, paths] of finds) assert.deepEqual(await found(glob, names), paths, glob)
  assert.equal(readGlob('/**/x[--0]y').rest!('x/y'), false, 'no range includes a /')
  assert.equal(readGlob('/**/x[--0]y').rest!('x.y'), true)
  assert.match(globError('/[z-a]') ?? '', /an invalid part/)
})
