// Makes the empty store that new embedded stores are unpacked from (src/store/driver/empty-store.ts), once for each PGlite.
import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants } from 'node:zlib'
import { emptyStoreName } from '../dist/store/driver/empty-store.js'

const at = name => fileURLToPath(new URL(`../dist/${name}`, import.meta.url))
const file = at(emptyStoreName())
if (!existsSync(file)) {
  process.stderr.write('Making an empty store …\n')
  for (const name of readdirSync(at('.'))) if (name.startsWith('empty-store-')) rmSync(at(name))
  const { PGlite } = await import('@electric-sql/pglite')
  const db = await PGlite.create('memory://')
  await db.exec('checkpoint')
  const tar = Buffer.from(await (await db.dumpDataDir('none')).arrayBuffer())
  await db.close()
  writeFileSync(`${file}.part`, brotliCompressSync(tar, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }))
  renameSync(`${file}.part`, file)
}
