/** The line to an S3 server: how long it waits, how often it tries, and what it says when nothing helps. */
import { S3Client } from '@aws-sdk/client-s3'
import { Problem } from '../kernel/problem.ts'
import { type S3Options, s3Defaults } from './s3-options.ts'
import { s3Problem } from './s3-problem.ts'

export type S3Settings = S3Options & typeof s3Defaults

export interface S3Connection {
  readonly settings: S3Settings
  /** Asks, and refuses in our words; `uri` is what it is about. */
  ask<T>(uri: string, question: (client: S3Client) => Promise<T>, signal?: AbortSignal): Promise<T>
  close(): void
}

/**
 * Credentials are looked for once per client. Where they are refused, the next request begins with a new client, which
 * looks again: who renews them need not start the process again.
 */
export function openS3Connection(options: S3Options): S3Connection {
  const settings = { ...s3Defaults, ...options }
  const clients: S3Client[] = []
  let current: S3Client | undefined
  return {
    settings,
    async ask(uri, question, signal) {
      const client = current ?? makeClient(settings)
      if (current === undefined) clients.push(client)
      current = client
      try {
        return await question(client)
      } catch (error) {
        const problem = s3Problem(error, uri, signal)
        if (problem instanceof Problem && problem.code === 'FILES_DENIED' && current === client) current = undefined
        throw problem
      }
    },
    close() {
      for (const client of clients) client.destroy()
    },
  }
}

/** Amazon redirects from here to the region of the bucket. */
const defaultRegion = 'us-east-1'

/** A client that is told no region looks for one in the profile, and refuses to work without. */
async function regionOfProfile(): Promise<string> {
  const client = new S3Client({})
  try {
    return await client.config.region()
  } catch {
    return defaultRegion
  } finally {
    client.destroy()
  }
}

function makeClient(settings: S3Settings): S3Client {
  const endpoint = settings.endpoint ?? process.env.AWS_ENDPOINT_URL_S3 ?? process.env.AWS_ENDPOINT_URL
  const region =
    settings.region ??
    process.env.AWS_REGION ??
    process.env.AWS_DEFAULT_REGION ??
    (endpoint === undefined ? regionOfProfile : defaultRegion)
  return new S3Client({
    ...(endpoint !== undefined && { endpoint }),
    region,
    // A copy: the client writes into what it is given.
    ...(settings.credentials && { credentials: { ...settings.credentials } }),
    // Handed on to the search for credentials: without it a profile's file is read once per process.
    ...({ ignoreCache: true } as object),
    forcePathStyle: settings.forcePathStyle ?? endpoint !== undefined,
    followRegionRedirects: true,
    retryMode: 'standard',
    maxAttempts: settings.tries,
    // Servers other than Amazon's often know no other checksum than the signature, which covers the bytes as well.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: Math.min(10, settings.silenceSeconds) * 1000,
      socketTimeout: settings.silenceSeconds * 1000,
    },
  })
}
