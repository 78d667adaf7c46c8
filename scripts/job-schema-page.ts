/** docs/job.schema.json: what src/spec checks, with the comments of its fields as descriptions. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Schema } from '../src/schema/check.ts'
import { jobSpecSchema } from '../src/spec/job-spec.ts'

type Comments = Record<string, string>

export function jobSchemaPage(): string {
  const spec = commentsIn('src/spec/job-spec.ts')
  const files = commentsIn('src/spec/file-fields.ts')
  const settings = commentsIn('src/kernel/settings.ts')
  const schema = jobSpecSchema()
  const job = described(schema, spec('jobFields'))
  const stage = described(at(schema, '$defs', 'stage'), {
    ...settings('TaskSettings'),
    ...settings('SettingsInput'),
    ...spec('stageFields'),
  })
  const { gate, compensate, retry, run } = stage.properties as Record<string, Schema>
  const [isTrue, isObject] = gate!.anyOf as Schema[]
  const properties = {
    ...(stage.properties as object),
    gate: { ...gate, anyOf: [isTrue, described(isObject!, spec('gateFields'))] },
    compensate: described(compensate!, spec('compensateFields')),
    retry: described(retry!, settings('TaskSettings')),
    run: described(run!, files('runFields')),
  }
  return `${JSON.stringify({ ...job, $defs: { ...(schema.$defs as object), stage: { ...stage, properties } } }, null, 2)}\n`
}

function described(schema: Schema, comments: Comments): Schema {
  const properties = Object.entries(schema.properties as Record<string, Schema>).map(([name, property]) => {
    const description = comments[name]
    return [name, description === undefined ? property : { description, ...property }] as const
  })
  return { ...schema, properties: Object.fromEntries(properties) }
}

/** The comment above each field of an interface or a table. */
function commentsIn(path: string): (name: string) => Comments {
  const text = readFileSync(join(findRoot(import.meta.dirname), path), 'utf8')
  return name => {
    const [, body = ''] = text.split(new RegExp(`^(?:export interface|const) ${name}\\b`, 'm'))
    const [fields = ''] = body.split(/^}/m)
    const comments = fields.matchAll(/\/\*\*\s((?:(?!\*\/)[\s\S])*)\*\/\n\s+(?:readonly )?(\w+)/g)
    return Object.fromEntries([...comments].map(([, comment, field]) => [field!, joinLines(comment!)]))
  }
}

const joinLines = (comment: string) => comment.replace(/(^|\n)\s*\* ?/g, ' ').trim()

function at(schema: Schema, ...path: string[]): Schema {
  return path.reduce((inner, name) => inner[name] as Schema, schema)
}

export function findRoot(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : findRoot(dirname(folder))
}
