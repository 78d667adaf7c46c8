/** Each one's words, without its routes. */
import type { DialectName } from '../protocol/dialects.ts'
import { words as falconeri } from './falconeri/words.ts'
import { words as jobnik } from './jobnik/words.ts'
import { words as jsm } from './jsm/words.ts'
import { words as marie } from './marie/words.ts'
import { words as pipeline } from './pipeline/words.ts'
import type { Words } from './words.ts'

export const wordsOf: Readonly<Record<DialectName, Words>> = { marie, jobnik, falconeri, pipeline, jsm }
