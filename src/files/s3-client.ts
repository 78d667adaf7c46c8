/** The connection to an S3 server: timeouts, retries, and errors. */
import { S3Client } from '@aws-sdk/client-s3'
import { Problem } from '../kernel/problem.ts'
import { type S3Options, s3Defaults } from './s3-options.ts'
import { s3Problem } from './s3-problem.ts'

export type S3Settings = S3Options & typeof s3Defaults

export interface S3Connection {
  readonly settings: S3Settings
  /** Sends a request and maps its errors to problems. `uri`: the file or folder in question. */
  ask<T>(uri: string, question: (client: S3Client) => Promise<T>, signal?: AbortSignal): Promise<T>
  close(): void
}

/**
 * A client looks up its credentials once. When they are rejected, the next request uses a new client, which looks them
 * up again, so renewed credentials need no restart of the process.
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

/** Without a configured region, the client looks in the profile, and fails if there is none. */
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
    // Copied, because the client modifies it.
    ...(settings.credentials && { credentials: { ...settings.credentials } }),
    // Passed to the credential lookup. Without it, the profile is read only once per process.
    ...({ ignoreCache: true } as object),
    forcePathStyle: settings.forcePathStyle ?? endpoint !== undefined,
    followRegionRedirects: true,
    retryMode: 'standard',
    maxAttempts: settings.tries,
    // Other servers often support only the checksum in the signature, which covers the bytes as well.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: Math.min(10, settings.silenceSeconds) * 1000,
      socketTimeout: settings.silenceSeconds * 1000,
    },
  })
}
