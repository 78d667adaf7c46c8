/** The layers of the code. A tidy test enforces the imports, and the table in ARCHITECTURE.md is generated from this. */

export interface Layer {
  /** A folder of src. */
  readonly folder: string
  /** The folders that it may import from, besides itself. */
  readonly imports: readonly string[]
  readonly description: string
}

export const layers: readonly Layer[] = [
  {
    folder: 'kernel',
    imports: [],
    description:
      'pure rules without I/O: lifecycles as data, the outcome of a task (`decide.ts`), the next step of a job (`advance.ts`), problems',
  },
  {
    folder: 'schema',
    imports: ['kernel'],
    description: 'shapes and checks that specs, protocol and dialects share; TypeBox',
  },
  {
    folder: 'spec',
    imports: ['kernel', 'schema'],
    description:
      'job specs: the allowed fields and their JSON Schema, the graph, conditions in CEL. Turns a spec into a `JobPlan`',
  },
  {
    folder: 'protocol',
    imports: ['kernel', 'schema', 'spec'],
    description:
      'the API, in process and over HTTP: the registry of operations, and the shapes of requests and answers, by noun',
  },
  {
    folder: 'client',
    imports: ['kernel', 'schema', 'spec', 'protocol'],
    description: 'the API over HTTP, with retries',
  },
  {
    folder: 'worker',
    imports: ['kernel', 'schema', 'protocol'],
    description: 'claims tasks, runs handlers, renews leases and reports outcomes. Knows the engine only as `SyncPort`',
  },
  {
    folder: 'machine',
    imports: [],
    description:
      'reads the process table of the operating system, and erases secrets from the entry of its own process',
  },
  {
    folder: 'store',
    imports: ['kernel', 'machine'],
    description: 'the database: the only folder with SQL',
  },
  {
    folder: 'files',
    imports: ['kernel', 'schema'],
    description:
      '`file://` and `s3://` behind one interface (`file-store.ts`), file names, URIs, the datums of an input (`inputs.ts`). Loads the S3 client lazily',
  },
  {
    folder: 'commands',
    imports: ['kernel', 'schema', 'protocol', 'worker', 'files', 'machine'],
    description: 'tasks of type `command`: a program with input and output files, in its own folder and process group',
  },
  {
    folder: 'engine',
    imports: ['kernel', 'schema', 'spec', 'protocol', 'store', 'files'],
    description: 'the use cases: enqueue, submit, sync, control, read, doctor',
  },
  {
    folder: 'runners',
    imports: ['kernel', 'schema', 'protocol'],
    description:
      'starts the workers of command stages, on this machine or as Kubernetes Jobs, and decides which Jobs to create or delete (`compare.ts`)',
  },
  {
    folder: 'babysitter',
    imports: ['kernel', 'schema', 'store', 'engine', 'runners'],
    description: 'background chores that repair the effects of crashes and outages',
  },
  {
    folder: 'testing',
    imports: ['kernel', 'schema', 'protocol', 'store', 'engine', 'babysitter', 'worker'],
    description: "`pawl/testing`: an engine in memory with a movable clock, for users' tests",
  },
  {
    folder: 'dialects',
    imports: ['kernel', 'schema', 'spec', 'protocol', 'engine'],
    description: 'the words, routes and shapes of five other systems, over the same engine',
  },
  {
    folder: 'server',
    imports: ['kernel', 'schema', 'spec', 'protocol', 'engine', 'dialects'],
    description:
      'the HTTP server: authenticates requests, validates them and calls the engine, as the protocol tables say',
  },
  {
    folder: 'conformance',
    imports: ['kernel', 'schema', 'protocol', 'engine', 'babysitter', 'server'],
    description: 'runs a worker program, and checks which rules of the worker protocol it follows',
  },
  {
    folder: 'config',
    imports: ['kernel', 'schema', 'spec', 'protocol', 'server'],
    description:
      "the table of settings, read from flags, the environment and `pawl.config.*`. Also loads users' modules",
  },
  {
    folder: 'cli',
    imports: [
      'kernel',
      'schema',
      'spec',
      'protocol',
      'client',
      'worker',
      'machine',
      'store',
      'files',
      'commands',
      'engine',
      'runners',
      'babysitter',
      'dialects',
      'server',
      'conformance',
      'config',
    ],
    description:
      'a table of commands, from which parsing, help and completion are derived. All output goes through `styled-line.ts`, which removes control characters',
  },
]

/** `index.ts`, the entry point of the package. */
export const rootImports: readonly string[] = [
  'kernel',
  'schema',
  'spec',
  'config',
  'protocol',
  'client',
  'engine',
  'babysitter',
  'worker',
]

export function layersTable(): string {
  const rows = layers.map(({ folder, imports, description }) => {
    const others = layers.filter(other => other.folder !== folder && !imports.includes(other.folder))
    const names =
      imports.length === 0
        ? 'nothing'
        : others.length < 3
          ? `all except ${others.map(other => other.folder).join(', ')}`
          : imports.join(', ')
    return `| \`${folder}/\` | ${names} | ${description} |`
  })
  return ['| folder | may import | contains |', '|---|---|---|', ...rows].join('\n')
}
