/** A test file for the runner's own tests. */
import { test } from 'node:test'

test('it passes and leaves a timer behind', () => void setInterval(() => {}, 1000))
