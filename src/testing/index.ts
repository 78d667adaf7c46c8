export type { DrainOptions, Ran } from './drain.ts'
export { type RunTaskOptions, runTask, type TaskRun } from './run-task.ts'
export { type TestEngine, type TestEngineOptions, testEngine } from './test-engine.ts'
export type { Selector, WaitOptions } from './wait-for.ts'
