/** Loads modules of users: TypeScript and JavaScript alike. What they import from 'pawl' is the Pawl that runs. */
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createJiti } from 'jiti'
import { Problem } from '../kernel/problem.ts'

const here = (path: string) => fileURLToPath(new URL(`../${path}${extname(import.meta.url)}`, import.meta.url))

/** Two copies of Pawl in one process would not know each other's errors and tasks. */
const alias = {
  'pawl/worker': here('worker/index'),
  'pawl/client': here('client/index'),
  'pawl/server': here('server/index'),
  pawl: here('index'),
}

export async function loadModule(path: string): Promise<Readonly<Record<string, unknown>>> {
  const loader = createJiti(import.meta.url, { alias, tryNative: true, interopDefault: false })
  try {
    return await loader.import(path)
  } catch (error) {
    throw new Problem('FILE_INVALID', { file: path, why: String((error as Error)?.message ?? error) }, error)
  }
}
