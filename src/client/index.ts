export { type ClientOptions, connect, type PawlClient } from './client.ts'
