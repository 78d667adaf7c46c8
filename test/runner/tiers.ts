/**
 * Which test files belong to which tier, by folder. The same commit always runs the same files: nothing here may depend
 * on the date or on chance.
 */
export type Tier = 'quick' | 'all'

/** `npm test`. Every promise in the README's table has its test in test/promises. */
const quickFolders = [
  'examples',
  'src',
  'test/cli',
  'test/commands',
  'test/dialects',
  'test/files',
  'test/http',
  'test/promises',
  'test/runner',
  'test/seeds',
  'test/stories',
  'test/tidy',
]

/** Folders that only `npm run test:all` runs, on PostgreSQL 18. It also repeats the quick tier on the other databases. */
const fullFolders = [
  'test/conformance',
  'test/dashboard',
  'test/docs',
  'test/examples',
  'test/faults',
  'test/kubernetes',
  'test/model',
  'test/package',
  'test/scale',
  'test/transactions',
]

/** Files that change something process-wide, with the reason. Each runs in a process of its own. */
export const runsAlone: Readonly<Record<string, string>> = {
  'src/worker/trace.test': 'registers a global OpenTelemetry provider',
  'test/docs/trace.test': 'registers a global OpenTelemetry provider',
  'test/dialects/marie-time.test': 'sets the time zone of the process',
  'test/files/s3-parts.test': 'measures the memory of the process',
}

/** The tier of a test file, given its path from the project's root. */
export function tierOf(file: string): Tier {
  const isIn = (folder: string) => file.startsWith(`${folder}/`)
  if (quickFolders.some(isIn)) return 'quick'
  if (fullFolders.some(isIn)) return 'all'
  throw new Error(
    `${file} is in no tier. Move it to a folder that test/runner/tiers.ts lists, or add its folder there.`,
  )
}
