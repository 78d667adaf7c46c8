import type { Fields } from '../../schema/check.ts'
import { pageFields, taskQueryFields } from '../query-fields.ts'

export const timelineFields: Fields = { limit: pageFields.limit! }

const { jobId, stageId, state, queue } = taskQueryFields
export const troubleQueryFields: Fields = { jobId: jobId!, stageId: stageId!, state: state!, queue: queue! }
