/** Loads TypeScript and JavaScript modules of users. Their imports from 'pawl' get the running copy of Pawl. */
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createJiti } from 'jiti'
import { Problem } from '../kernel/problem.ts'

const ownModule = (path: string) => fileURLToPath(new URL(`../${path}${extname(import.meta.url)}`, import.meta.url))

/** Two copies of Pawl in one process would not recognize each other's errors and tasks. */
const alias = {
  'pawl/worker': ownModule('worker/index'),
  'pawl/client': ownModule('client/index'),
  'pawl/server': ownModule('server/index'),
  pawl: ownModule('index'),
}

export async function loadModule(path: string): Promise<Readonly<Record<string, unknown>>> {
  const loader = createJiti(import.meta.url, { alias, tryNative: true, interopDefault: false })
  try {
    return await loader.import(path)
  } catch (error) {
    throw new Problem('FILE_INVALID', { file: path, why: String((error as Error)?.message ?? error) }, error)
  }
}
