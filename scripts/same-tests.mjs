// Shows that a commit always runs the same tests: runs `npm test` today and as if it were 17 days later, and compares the
// lists of tests. Arguments are passed on: `node scripts/same-tests.mjs --all` compares `npm run test:all`.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'

const at = name => fileURLToPath(new URL(name, import.meta.url))

function listOfTests(days) {
  const env = {
    ...process.env,
    PAWL_SHIFT_DAYS: String(days),
    NODE_OPTIONS: `--import ${pathToFileURL(at('shift-date.mjs')).href}`,
  }
  console.log(`A run as if it were ${days} days later:`)
  spawnSync(process.execPath, [at('test.mjs'), ...process.argv.slice(2)], { env, stdio: 'inherit' })
  return readFileSync(at('../build/tests.txt'), 'utf8').trim().split('\n')
}

const [now, later] = [listOfTests(0), listOfTests(17)]
const onlyNow = now.filter(title => !later.includes(title))
const onlyLater = later.filter(title => !now.includes(title))
for (const title of onlyNow) console.log(`only now: ${title}`)
for (const title of onlyLater) console.log(`only later: ${title}`)
const isSame = onlyNow.length + onlyLater.length === 0 && now.length === later.length
console.log(isSame ? `Both runs had the same ${now.length} tests.` : 'The runs had different tests.')
process.exit(isSame ? 0 : 1)
