/** A test file for the runner's own tests. */
import { test } from 'node:test'

test('it takes its process with it', () => void process.kill(process.pid, 'SIGKILL'))
