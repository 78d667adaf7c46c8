/** The files of a new project. */

export interface ProjectFile {
  readonly path: string
  readonly content: string
}

interface Project {
  readonly name: string
  /** The folder of the tasks, such as src/tasks. */
  readonly tasks: string
  readonly tests: string
  /** Where npm finds Pawl: a version, or a file. */
  readonly pawl: string
}

export const testCommand = (tests: string) => `node --import jiti/register --test ${tests}/*.test.ts`

/** The package.json of a project that has none. */
export function packageFile({ name, tests, pawl }: Project): ProjectFile {
  const manifest = {
    name,
    private: true,
    type: 'module',
    scripts: { dev: 'pawl dev', start: 'pawl up', worker: 'pawl worker', test: testCommand(tests) },
    dependencies: { pawl },
    devDependencies: { '@types/node': '^20', jiti: '^2' },
  }
  return { path: 'package.json', content: `${JSON.stringify(manifest, null, 2)}\n` }
}

/** An example task with its test. */
export function exampleFiles({ tasks, tests }: Project): ProjectFile[] {
  const up = tests
    .split('/')
    .map(() => '..')
    .join('/')
  return [
    { path: `${tasks}/greet.ts`, content: greet },
    { path: `${tests}/greet.test.ts`, content: greetTest(`${up}/${tasks}`) },
  ]
}

export function otherFiles(project: Project): ProjectFile[] {
  return [
    { path: 'tsconfig.json', content: tsconfig },
    { path: '.gitignore', content: 'node_modules\npawl-data\n' },
    { path: 'README.md', content: readme(project) },
  ]
}

/** The imports of the created files are not those of this one. */
const from = (module: string) => `from '${module}'`

const greet = `import { defineTask } ${from('pawl')}

/** A task has a type, a policy for retries, and a handler. What the handler returns is the output of the task. */
export const greet = defineTask({
  type: 'greet',
  retry: { attempts: 3, delaySeconds: 1 },
  handler: async ({ name }: { name: string }) => {
    return { greeting: \`Hello, \${name}!\` }
  },
})
`

const greetTest = (tasks: string) => `import assert ${from('node:assert/strict')}
import { test } ${from('node:test')}
import { runTask, testEngine } ${from('pawl/testing')}
import { greet } ${from(`${tasks}/greet.ts`)}

test('greet greets by name', async () => {
  const { outcome, output } = await runTask(greet, { name: 'Ada' })
  assert.equal(outcome, 'succeeded')
  assert.deepEqual(output, { greeting: 'Hello, Ada!' })
})

test('a queued task runs, and its output can be read', async t => {
  const engine = await testEngine()
  t.after(() => engine.close())
  const { id } = await engine.enqueue(greet, { name: 'Grace' })
  await engine.drain([greet])
  const task = await engine.task(id)
  assert.equal(task.state, 'succeeded')
  assert.deepEqual(task.output, { greeting: 'Hello, Grace!' })
})
`

const tsconfig = `{
  "compilerOptions": {
    "target": "es2022",
    "module": "nodenext",
    "strict": true,
    "noEmit": true,
    "allowImportingTsExtensions": true,
    "skipLibCheck": true
  }
}
`

const readme = ({ name, tasks, tests }: Project) => `# ${name}

Background jobs with [Pawl](https://github.com/pawl-jobs/pawl).

| | |
|---|---|
| \`npx pawl dev\` | runs a server and a worker for the tasks in \`${tasks}\`, and restarts the worker when a file changes |
| \`npx pawl task add greet '{"name": "Ada"}' --wait\` | queues a task and prints its output |
| \`npx pawl task list\` | lists the tasks; the dashboard at http://127.0.0.1:7295 shows them too |
| \`${testCommand(tests)}\` | runs the tests |

\`pawl dev\` stores its data in \`pawl-data\`. In production, run \`pawl up\` with \`DATABASE_URL=postgres://…\`, and
\`pawl worker\` with \`PAWL_SERVER\` set to the address of that server. Both are in \`node_modules/.bin\`.

To queue a task from your own code:

\`\`\`ts
import { connect } ${from('pawl/client')}
import { greet } ${from(`./${tasks}/greet.ts`)}

const pawl = connect({ server: 'http://127.0.0.1:7295' })
const task = await pawl.enqueue(greet, { name: 'Ada' })
console.log(await task.result())
\`\`\`
`
