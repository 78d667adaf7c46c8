/** The thread that parses a large spec for `parseSpecText`. */
import { parentPort, workerData } from 'node:worker_threads'
import { readYaml } from '../spec/read-yaml.ts'

parentPort!.postMessage(readYaml(workerData as string))
