/** An S3 that fails in every possible way: transient faults only cost time, others become problems of Pawl. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { openFiles } from '../../src/files/files.ts'
import { isWorthRetry } from '../../src/kernel/problem.ts'
import { latch } from '../harness/eventually.ts'
import { listed, putText, readText, withFolder, withSmallS3 } from './places.ts'
import { credentials } from './s3rver.ts'
import type { Asked, Fault } from './small-s3.ts'

const folder = 's3://bucket/'
const uri = `${folder}x`
const worthRetry = (code: string) => (error: unknown) => {
  assert.equal((error as { code?: string }).code, code, String(error))
  return isWorthRetry(error)
}

/** Makes the first matching requests fail. */
function first(count: number, fault: Fault, fits: (asked: Asked) => boolean = () => true) {
  let left = count
  return (asked: Asked) => (fits(asked) && left-- > 0 ? fault : undefined)
}

const passing: [string, Fault][] = [
  ['500', { status: 500, code: 'InternalError' }],
  ['503', { status: 503, code: 'SlowDown' }],
  ['a cut connection', 'cut'],
  ['a lost answer', 'lose'],
  ['silence', 'silent'],
]
for (const [name, fault] of passing) {
  test(`${name} is passed over: every request is tried again`, () =>
    withSmallS3(
      async ({ s3, files }) => {
        const twice = () => {
          s3.fault = first(2, fault)
        }
        twice()
        const kept = await putText(files, folder, 'x', 'bytes')
        twice()
        assert.equal((await files.stat(uri))?.size, 5)
        twice()
        assert.deepEqual(await listed(files, folder), ['x'])
        twice()
        assert.equal(await readText(files, uri), 'bytes')
        twice()
        await files.promote(uri, `${folder}y`, kept)
        twice()
        await files.remove([uri, `${folder}z`])
        assert.deepEqual(await listed(files, folder), ['y'])
      },
      { silenceSeconds: 0.2 },
    ))
}

test('a request is tried again, however many others have failed at the same time', () =>
  withSmallS3(async ({ s3, files }) => {
    const seen = new Set<string>()
    s3.fault = ({ key }) => {
      if (seen.has(key)) return undefined
      seen.add(key)
      return 'cut'
    }
    const names = Array.from({ length: 120 }, (_, n) => `f${n}`)
    await Promise.all(names.map(name => putText(files, folder, name, name)))
    assert.equal((await listed(files, folder)).length, names.length)
  }))

test('a server that stays away, is silent or breaks down is unavailable, and a task that met it is worth a retry', () =>
  withSmallS3(
    async ({ s3, files }) => {
      for (const fault of ['cut', 'silent', { status: 500, code: 'InternalError' }] satisfies Fault[]) {
        s3.fault = () => fault
        await Promise.all(
          [listed(files, folder), readText(files, uri), files.stat(uri), files.remove([uri])].map(asked =>
            assert.rejects(asked, worthRetry('FILES_UNAVAILABLE')),
          ),
        )
      }
      const nobody = openFiles({ s3: { endpoint: await closedPort(), credentials, tries: 2 } })
      await assert.rejects(nobody.stat(uri), worthRetry('FILES_UNAVAILABLE'))
    },
    { silenceSeconds: 0.2, tries: 2 },
  ))

async function closedPort(): Promise<string> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise(resolve => server.close(resolve))
  return `http://127.0.0.1:${port}`
}

test('credentials that are denied or have expired are told as such, and are worth a retry', () =>
  withSmallS3(async ({ s3, files }) => {
    const refusals: Fault[] = [
      { status: 403, code: 'AccessDenied' },
      { status: 403, code: 'InvalidAccessKeyId' },
      { status: 400, code: 'ExpiredToken' },
    ]
    for (const fault of refusals) {
      s3.fault = () => fault
      await Promise.all(
        [listed(files, folder), readText(files, uri), putText(files, folder, 'x')].map(asked =>
          assert.rejects(asked, worthRetry('FILES_DENIED')),
        ),
      )
    }
    s3.fault = () => ({ status: 403, code: 'AccessDenied' })
    await assert.rejects(files.stat(uri), worthRetry('FILES_DENIED'))
  }))

test('credentials that are renewed in the environment are used without a new start', () =>
  withSmallS3(async ({ s3 }) => {
    const given = { ...process.env }
    const files = openFiles({ s3: { endpoint: s3.endpoint } })
    try {
      Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'OLD', AWS_SECRET_ACCESS_KEY: 'x' })
      s3.fault = ({ signedBy }) => (signedBy === 'NEW' ? undefined : { status: 403, code: 'InvalidAccessKeyId' })
      await assert.rejects(listed(files, folder), { code: 'FILES_DENIED' })
      process.env.AWS_ACCESS_KEY_ID = 'NEW'
      assert.deepEqual(await listed(files, folder), [])
    } finally {
      process.env = given
      await files.close()
    }
  }))

test('the server and its region may come from the environment', () =>
  withSmallS3(async ({ s3 }) => {
    const given = { ...process.env }
    Object.assign(process.env, { AWS_ENDPOINT_URL: s3.endpoint, AWS_REGION: 'eu-central-1' })
    const files = openFiles({ s3: { credentials } })
    try {
      assert.deepEqual(await listed(files, folder), [])
      assert.match(s3.asked[0]?.headers.authorization ?? '', /\/eu-central-1\//)
    } finally {
      process.env = given
      await files.close()
    }
  }))

test('where nothing names a region, us-east-1 is used', () =>
  withSmallS3(async ({ s3 }) => {
    await withFolder(async local => {
      const given = { ...process.env }
      const file = join(local, 'config')
      await writeFile(file, `[default]\nendpoint_url = ${s3.endpoint}\n`)
      const { AWS_REGION: _, AWS_DEFAULT_REGION: __, ...rest } = given
      process.env = { ...rest, AWS_CONFIG_FILE: file, AWS_SHARED_CREDENTIALS_FILE: join(local, 'none') }
      const files = openFiles({ s3: { credentials, forcePathStyle: true } })
      try {
        assert.deepEqual(await listed(files, folder), [])
        assert.match(s3.asked[0]?.headers.authorization ?? '', /\/us-east-1\//)
      } finally {
        process.env = given
        await files.close()
      }
    })
  }))

test('a bucket that does not exist is not found, and not tried again', () =>
  withSmallS3(async ({ s3, files }) => {
    s3.buckets.clear()
    await Promise.all(
      [listed(files, folder), readText(files, uri), putText(files, folder, 'x')].map(asked =>
        assert.rejects(asked, error => !isWorthRetry(error) && /NoSuchBucket/.test(String(error))),
      ),
    )
    assert.equal(s3.asked.length, 3)
  }))

test('a file whose connection is cut again and again arrives whole', () =>
  withSmallS3(async ({ s3, files }) => {
    await withFolder(async local => {
      const bytes = randomBytes(3 << 20)
      await writeFile(join(local, 'x'), bytes)
      await files.put(join(local, 'x'), uri)
      s3.fault = ({ method }) => (method === 'GET' ? { cutAfter: 700_000 } : undefined)
      const hash = createHash('sha256')
      for await (const chunk of await files.open(uri)) hash.update(chunk)
      assert.equal(hash.digest('hex'), createHash('sha256').update(bytes).digest('hex'))
    })
  }))

test('a file that is replaced while it is read is not mixed with the new one', () =>
  withSmallS3(async ({ s3, files }) => {
    await putText(files, folder, 'x', 'old'.repeat(100_000))
    // Uploaded by somebody else, without a SHA-256.
    const bucket = s3.buckets.get('bucket')!
    bucket.set('x', { ...bucket.get('x')!, metadata: {} })
    s3.fault = ({ method, headers }) => (method === 'GET' && !headers.range ? { cutAfter: 100_000 } : undefined)
    const reading = await files.open(uri)
    await putText(files, folder, 'x', 'new'.repeat(100_000))
    await assert.rejects(reading.toArray(), worthRetry('FILES_UNAVAILABLE'))
  }))

test('bytes that changed on the way are noticed', () =>
  withSmallS3(async ({ s3, files }) => {
    await putText(files, folder, 'x', 'bytes')
    s3.fault = ({ method }) => (method === 'GET' ? { flip: true } : undefined)
    await assert.rejects(readText(files, uri), { code: 'FILES_UNAVAILABLE', message: /does not match its SHA-256/ })
  }))

test('reading that is given up, or called off, lets go of the connection', () =>
  withSmallS3(async ({ s3, files }) => {
    await putText(files, folder, 'x', 'x'.repeat(10 << 20))
    const reading = await files.open(uri)
    for await (const _chunk of reading) break
    assert.ok(reading.destroyed)
    s3.fault = () => 'silent'
    const stop = new AbortController()
    const waiting = files.open(uri, stop.signal)
    stop.abort(new Error('called off'))
    await assert.rejects(waiting, /called off/)
  }))

test('an upload that is called off while the server is silent ends at once, and its parts are thrown away', () =>
  withSmallS3(
    async ({ s3, files }) => {
      await withFolder(async local => {
        await writeFile(join(local, 'x'), Buffer.alloc(30 << 20))
        const hanging = latch()
        s3.fault = ({ query, method }) => {
          if (method !== 'PUT' || query.get('partNumber') !== '3') return undefined
          hanging.open()
          return 'silent'
        }
        const stop = new AbortController()
        const putting = files.put(join(local, 'x'), uri, stop.signal)
        await hanging.opened
        assert.equal(s3.uploads.size, 1)
        stop.abort(new Error('called off'))
        await assert.rejects(putting, /called off/)
        assert.equal(s3.uploads.size, 0)
        assert.equal(s3.buckets.get('bucket')!.size, 0)
      })
    },
    { partBytes: 5 << 20 },
  ))
