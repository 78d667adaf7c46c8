import type { DialectName } from '../protocol/dialects.ts'
import type { Dialect } from './dialect.ts'
import { falconeri } from './falconeri/dialect.ts'
import { jobnik } from './jobnik/dialect.ts'
import { jsm } from './jsm/dialect.ts'
import { marie } from './marie/dialect.ts'
import { pipeline } from './pipeline/dialect.ts'

export const dialects: Readonly<Record<DialectName, Dialect>> = { marie, jobnik, falconeri, pipeline, jsm }
