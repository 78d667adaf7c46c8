export * from '../kernel/terminal.ts'
export { type ClientOptions, connect, type PawlClient } from './client.ts'
