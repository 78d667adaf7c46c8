import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { envOf, flagOf, serverBounds, storeSettings } from '../../src/config/settings.ts'
import { mostEndpoints, mostWorkers } from '../../src/dialects/marie/service-routes.ts'
import { mostTaskBytes, mostTasks } from '../../src/dialects/pipeline/dialect.ts'
import { mostNamed, mostStreamed } from '../../src/dialects/pipeline/stream.ts'
import { mostMakings } from '../../src/engine/files/read-artifacts.ts'
import { stepsPerCharacter, stepsPerJob, stepsPerSecond } from '../../src/engine/jobs/evaluate-conditions.ts'
import { maxJobBytes } from '../../src/engine/jobs/job-control.ts'
import { maxFilesBytes } from '../../src/engine/tasks/one-task.ts'
import { maxHistoryBytes, maxPatchBytes } from '../../src/engine/tasks/patch.ts'
import { longHistoryBytes, shortTextLength } from '../../src/engine/tasks/settle.ts'
import { maxLabels } from '../../src/kernel/metrics.ts'
import { mostReports } from '../../src/protocol/files/artifacts.ts'
import { mostRedriven } from '../../src/protocol/tasks/dead-letters.ts'
import { logLimits } from '../../src/protocol/tasks/logs.ts'
import { maxTasksPerCall } from '../../src/protocol/tasks/new-task.ts'
import { maxClaim } from '../../src/protocol/tasks/sync.ts'
import { serverDefaults } from '../../src/server/options.ts'
import { longestCondition, longestConditions, longestValue, mostSteps } from '../../src/spec/conditions.ts'
import { mostNeeds } from '../../src/spec/graph.ts'
import { mostStages } from '../../src/spec/job-spec.ts'
import {
  longestYaml,
  mostContainers,
  mostMembers,
  mostSequences,
  mostTexts,
  mostValues,
} from '../../src/spec/json-bounds.ts'
import { mostExpanded, mostReferences } from '../../src/spec/json-schema/limits.ts'
import { maxRecordedQueues } from '../../src/store/admin/stats.ts'
import { maxPageBytes } from '../../src/store/driver/paging.ts'
import { maxLineageBytes, mostOutputs } from '../../src/store/files/read-artifacts.ts'
import { maxUnservedNamed } from '../../src/store/flow/queue-depths.ts'
import { maxRepeatedBytes } from '../../src/store/tasks/sessions.ts'

const page = readFileSync('docs/limits.md', 'utf8')
const rows = page.split('\n').filter(line => line.startsWith('| '))

/** The start of a row, and the numbers that it must name. */
const values: Readonly<Record<string, readonly (number | string)[]>> = {
  'JSON body': [`${serverDefaults.maxBodyBytes / 2 ** 20} MiB`],
  'YAML body': [`${longestYaml / 2 ** 20} MiB`],
  'lists and objects in a JSON body': [mostContainers, mostMembers, mostValues],
  'distinct sequences of member names in a JSON body': [mostSequences],
  'distinct strings of at most 10 characters in a JSON body': [mostTexts],
  'payload or output': ['1 MiB'],
  'tasks in one call': [maxTasksPerCall],
  'tasks in one claim': [maxClaim],
  'reports of one kind': [mostReports],
  'claim that is answered again': [`${maxRepeatedBytes / 2 ** 20} MiB`],
  'errors and reasons': [`${longHistoryBytes / 2 ** 20} MiB`, shortTextLength],
  'change of metadata': [`${maxPatchBytes / 1024} KiB`, `${maxHistoryBytes / 2 ** 20} MiB`],
  'files of an attempt': [`${maxFilesBytes / 2 ** 20} MiB`],
  'lineage of a file': [mostMakings, mostOutputs, `${maxLineageBytes / 2 ** 20} MiB`],
  'output of a stage': [longestValue, `${stepsPerCharacter} steps`],
  'plans, metadata and approvals': [`${maxJobBytes / 2 ** 20} MiB`],
  'log of one attempt': [logLimits.lines, `${logLimits.bytes / 1024} KiB`, logLimits.messageLength],
  'dead letters in one redrive': [mostRedriven],
  'JSON Schema of a task type': [mostReferences, mostExpanded],
  'stages of a job': [mostStages],
  'needs of all stages': [mostNeeds],
  'one condition': [longestCondition],
  'conditions of all stages': [longestConditions],
  'conditions of one stage': [mostSteps],
  'conditions of a job': [stepsPerJob],
  'costly conditions': [stepsPerSecond],
  'open streams of events': [serverDefaults.maxStreams],
  'open streams of one key': [serverDefaults.maxStreamsPerKey],
  'queues and task types': [maxLabels],
  'queues that Jobnik': [maxLabels],
  'streamed progress of a job': [mostStreamed, mostNamed],
  'metrics and errors of the tasks': [mostTasks, `${mostTaskBytes / 2 ** 20} MiB`],
  'queues without a worker': [maxUnservedNamed],
  'workers that Marie': [mostWorkers, mostEndpoints],
  'queues whose depth': [maxRecordedQueues],
  'page of task types or workers': [`${maxPageBytes / 2 ** 20} MiB`],
}

test('the page of limits says the values that hold', () => {
  for (const [start, wanted] of Object.entries(values)) {
    const row = rows.find(line => line.startsWith(`| ${start}`))
    assert.ok(row !== undefined, `no row begins with "${start}"`)
    for (const value of wanted) {
      const text = typeof value === 'number' ? value.toLocaleString('en') : value
      assert.ok(row.includes(text), `"${start}" must say ${text}`)
    }
  }
})

test('the page of limits names every setting that bounds something', () => {
  const bounds = storeSettings.filter(name => name.endsWith('Seconds'))
  for (const name of [...serverBounds, ...bounds, 'maxPayloadBytes'] as const) {
    const env = envOf(name)
    assert.ok(page.includes(`\`--${flagOf(name)}\`, \`${env}\``), `--${flagOf(name)} and ${env}`)
  }
})
