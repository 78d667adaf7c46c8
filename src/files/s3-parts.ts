/** Multipart uploads. The object appears completely when all parts are there, or never. */
import { randomUUID } from 'node:crypto'
import {
  AbortMultipartUploadCommand,
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  NoSuchUpload,
  type S3Client,
} from '@aws-sdk/client-s3'

export interface Target {
  readonly Bucket: string
  readonly Key: string
  readonly Metadata?: Record<string, string>
}

export interface PartOf extends Target {
  readonly UploadId: string
  readonly PartNumber: number
}

/** Sends one part and returns its ETag. */
export type SendPart = (part: PartOf, signal: AbortSignal) => Promise<string | undefined>

export const mostParts = 10_000
const atOnce = 4

/**
 * Requests the next part when there is room for it, so that at most four are in memory. The first failure stops the
 * others and discards the upload. A process that is killed leaves its parts in the bucket: a lifecycle rule for
 * incomplete uploads removes them.
 */
export async function sendInParts(
  client: S3Client,
  { Bucket, Key, Metadata }: Target,
  parts: AsyncIterable<SendPart>,
  signal?: AbortSignal,
): Promise<void> {
  const mark = randomUUID()
  const target = { Bucket, Key }
  const create = new CreateMultipartUploadCommand({ ...target, Metadata: { ...Metadata, 'pawl-upload': mark } })
  const { UploadId = '' } = await client.send(create, options(signal))
  const stop = new AbortController()
  const stopped = AbortSignal.any([stop.signal, ...(signal ? [signal] : [])])
  const running = new Set<Promise<void>>()
  try {
    const done: CompletedPart[] = []
    let count = 0
    for await (const send of parts) {
      const PartNumber = ++count
      const sent = send({ ...target, UploadId, PartNumber }, stopped).then(ETag => {
        done.push({ PartNumber, ETag })
        running.delete(sent)
      })
      sent.catch(() => {})
      running.add(sent)
      if (running.size >= atOnce) await Promise.race(running)
    }
    await Promise.all(running)
    const MultipartUpload = { Parts: done.sort((one, other) => one.PartNumber! - other.PartNumber!) }
    const complete = new CompleteMultipartUploadCommand({ ...target, UploadId, MultipartUpload })
    await client.send(complete, options(signal)).catch(error => forgive(client, target, mark, error))
  } catch (error) {
    stop.abort()
    await Promise.allSettled(running)
    await client.send(new AbortMultipartUploadCommand({ ...target, UploadId })).catch(() => {})
    throw error
  }
}

/**
 * The upload may have been completed although the answer was lost: the server then no longer knows the upload. A marker
 * in the metadata shows whether the object is ours.
 */
async function forgive(client: S3Client, target: Target, mark: string, error: unknown): Promise<void> {
  if (!(error instanceof NoSuchUpload)) throw error
  const head = await client.send(new HeadObjectCommand(target))
  if (head.Metadata?.['pawl-upload'] !== mark) throw error
}

export function options(signal?: AbortSignal): { abortSignal?: AbortSignal } {
  return signal === undefined ? {} : { abortSignal: signal }
}
