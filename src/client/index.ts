export {
  type Entity,
  isSuccessfulTerminal,
  isTerminal,
  type StateOfEntity,
  terminalStates,
  wasExecuted,
} from '../kernel/lifecycles.ts'
export {
  JobFailed,
  type JobHandle,
  type ResultOptions,
  TaskFailed,
  type TaskHandle,
} from '../protocol/tasks/results.ts'
export { type ClientOptions, connect, type PawlClient } from './client.ts'
