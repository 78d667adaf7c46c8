/** A test file for the runner's own tests. */
import { test } from 'node:test'

test('it ends', () => {})
test('it never ends', () => new Promise(() => setInterval(() => {}, 1000)))
