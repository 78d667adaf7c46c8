/** `npm run docs`: writes everything that is generated from the code. Tests fail while one of these files is stale. */
import { writeFileSync } from 'node:fs'
import { generatedDocs } from './generated-docs.ts'
import { publicApi, publicApiFile } from './public-api.ts'
import { embeddedSchemaPage } from './schema-page.ts'

for (const [path, text] of Object.entries(generatedDocs())) writeFileSync(path, text)
writeFileSync('docs/schema.sql', await embeddedSchemaPage())
writeFileSync(publicApiFile, publicApi())
