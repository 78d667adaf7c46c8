import { pawl } from 'pawl'
import { publish, resize } from './tasks.ts'

export const openApp = (database?: string) =>
  pawl({ ...(database !== undefined && { database }), tasks: { resize, publish } })

type App = Awaited<ReturnType<typeof openApp>>

export async function resizeOne(app: App, file: string): Promise<string> {
  const handle = await app.enqueue('resize', { file, width: 100 })
  const { picture } = await handle.result({ timeoutSeconds: 30 })
  return picture
}

export async function resizeAll(app: App, files: readonly string[]): Promise<number> {
  const queued = await app.enqueueMany(files.map(file => ({ type: 'resize', payload: { file }, priority: 5 })))
  return queued.length
}
