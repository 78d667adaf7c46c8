import { DeleteObjectCommand, DeleteObjectsCommand } from '@aws-sdk/client-s3'
import { targetOf } from './s3.ts'
import type { S3Line } from './s3-client.ts'
import { s3Problem } from './s3-problem.ts'
import { uriOf } from './uri.ts'

const atOnce = 1000

/** Many in one request, bucket by bucket; but one by one what cannot be written in the XML of such a request. */
export async function removeObjects(line: S3Line, uris: readonly string[]): Promise<void> {
  const plain = new Map<string, string[]>()
  for (const uri of uris) {
    const { Bucket, Key } = targetOf(uri)
    if (isPlain(Key))
      plain
        .set(Bucket, plain.get(Bucket) ?? [])
        .get(Bucket)!
        .push(Key)
    else await line.ask(uri, client => client.send(new DeleteObjectCommand({ Bucket, Key })))
  }
  for (const [bucket, keys] of plain) {
    for (let at = 0; at < keys.length; at += atOnce) await removeMany(line, bucket, keys.slice(at, at + atOnce))
  }
}

async function removeMany(line: S3Line, Bucket: string, keys: readonly string[]): Promise<void> {
  const Delete = { Quiet: true, Objects: keys.map(Key => ({ Key })) }
  const uri = uriOf({ scheme: 's3', bucket: Bucket, path: keys[0]! })
  const { Errors = [] } = await line.ask(uri, client => client.send(new DeleteObjectsCommand({ Bucket, Delete })))
  const left = Errors.find(({ Code }) => Code !== 'NoSuchKey')
  if (left === undefined) return
  const error = Object.assign(new Error(left.Message ?? ''), { name: left.Code ?? 'Error' })
  throw s3Problem(error, uriOf({ scheme: 's3', bucket: Bucket, path: left.Key ?? keys[0]! }))
}

function isPlain(key: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what XML cannot write
  return !/[\u0000-\u001f\u007f-\u009f\ufffe\uffff]/.test(key) && key.trim() === key
}
