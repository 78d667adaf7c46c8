// `npm run fuzz`: sends random requests with keys of every role to our routes and those of the dialects. It fails on an
// answer of 500 or more, on one that takes longer than two seconds, and when memory grows. `--requests N` and `--seed N`
// repeat a run; without a seed, one is chosen and printed.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

process.chdir(fileURLToPath(new URL('..', import.meta.url)))
const args = process.argv.slice(2)
const numberAfter = (name, otherwise) => {
  const at = args.indexOf(name)
  const value = at === -1 ? otherwise : Number(args[at + 1])
  if (Number.isSafeInteger(value) && value > 0) return value
  console.error(`${name} needs a whole number above 0.`)
  process.exit(2)
}
const requests = numberAfter('--requests', 60_000)
const seed = numberAfter('--seed', (Date.now() % 2 ** 31) + 1)

const { status } = spawnSync(
  process.execPath,
  ['scripts/test.mjs', 'http/fuzz.test', '--processes', '1', '--seed', String(seed)],
  { stdio: 'inherit', env: { ...process.env, PAWL_FUZZ_REQUESTS: String(requests) } },
)
process.exit(status ?? 1)
