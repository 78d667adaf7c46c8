export { openApi } from './open-api.ts'
export type { ServerOptions } from './options.ts'
export { type Server, startServer } from './server.ts'
