/** Every command of the CLI, in the order of the help. */
import type { Command } from './command.ts'
import { bench } from './commands/bench.ts'
import { completeFor } from './commands/complete.ts'
import { completionFor } from './commands/completion.ts'
import { config } from './commands/config.ts'
import { conformance } from './commands/conformance.ts'
import { deadLetterCommands } from './commands/dead-letters.ts'
import { dev } from './commands/dev.ts'
import { eventsTail } from './commands/events.ts'
import { jobOutputs, lineage } from './commands/files.ts'
import { init } from './commands/init.ts'
import { jobControl, jobDescribe, jobEvents, jobList } from './commands/job.ts'
import { jobRun, jobWait } from './commands/job-run.ts'
import { keyCommands } from './commands/keys.ts'
import { queueList, workerList, workerLost } from './commands/queues.ts'
import { jobConvert, k8sRender } from './commands/spec.ts'
import { stageCommands } from './commands/stage.ts'
import { doctor, migrate } from './commands/store.ts'
import { taskAdd, taskControl, taskDescribe, taskEvents, taskList } from './commands/task.ts'
import { taskLogs } from './commands/task-logs.ts'
import { typeCommands } from './commands/task-types.ts'
import { up } from './commands/up.ts'
import { worker } from './commands/worker.ts'

/** Lists the commands under a heading of the help. */
const under = (group: string, list: readonly Command[]): Command[] => list.map(command => ({ ...command, group }))

const table: readonly Command[] = [
  ...under('Start', [init, dev, up, worker]),
  ...under('Jobs', [
    jobRun,
    jobList,
    jobDescribe,
    jobWait,
    jobEvents,
    jobOutputs,
    ...jobControl,
    ...stageCommands,
    lineage,
    jobConvert,
  ]),
  ...under('Tasks', [
    taskAdd,
    taskList,
    taskDescribe,
    taskEvents,
    taskLogs,
    ...taskControl,
    ...typeCommands,
    ...deadLetterCommands,
  ]),
  ...under('Observe', [queueList, workerList, workerLost, eventsTail]),
  ...under('Operate', [...keyCommands, migrate, doctor, config, k8sRender]),
  ...under('Develop', [conformance, bench]),
]

export const commands: readonly Command[] = [...table, ...under('Develop', [completionFor(table)]), completeFor(table)]
