/** A test file for the runner's own tests. */
import { test } from 'node:test'

test('it passes', () => {})
