import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkPodRules, imagePattern, noPodRules } from './pod-rules.ts'

function allows(pattern: string, image: string): boolean {
  try {
    checkPodRules({ ...noPodRules, images: [pattern] }, 's', null, { kind: 'kubernetes', image })
    return true
  } catch {
    return false
  }
}

test('a pattern of images allows what it says, and nothing of another registry', () => {
  for (const [pattern, image] of [
    ['*', 'anything/at:all'],
    ['python:3.12', 'python:3.12'],
    ['python:*', 'python:3.12-slim'],
    ['python@*', 'python@sha256:0123'],
    ['registry.example.com/*', 'registry.example.com/team/ocr:2'],
    ['registry.example.com:5000/team/*', 'registry.example.com:5000/team/ocr'],
  ] as const) {
    assert.ok(allows(pattern, image), `${pattern} allows ${image}`)
  }
  for (const [pattern, image] of [
    ['python:3.12', 'python:3.12-evil'],
    ['python:*', 'python:5000/evil/image'],
    ['python:*', 'evil.example.com/python:3.12'],
    ['registry.example.com/*', 'registry.example.com.evil.com/ocr'],
    ['registry.example.com/team/*', 'registry.example.com/other/ocr'],
  ] as const) {
    assert.ok(!allows(pattern, image), `${pattern} does not allow ${image}`)
  }
})

test('a pattern that would also allow images whose names merely begin so is refused', () => {
  for (const good of ['*', 'python:*', 'a/*', 'a:5000/b@*', 'python']) assert.match(good, imagePattern)
  for (const bad of ['python*', 'registry.example.com*', '*/ocr', 'a*/b', 'a b']) assert.doesNotMatch(bad, imagePattern)
})
