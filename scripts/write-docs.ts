import { mkdirSync, writeFileSync } from 'node:fs'
import { generatedDocs } from './generated-docs.ts'
import { embeddedSchemaPage } from './schema-page.ts'

mkdirSync('docs', { recursive: true })
for (const [path, text] of Object.entries(generatedDocs())) writeFileSync(path, text)
writeFileSync('docs/schema.sql', await embeddedSchemaPage())
