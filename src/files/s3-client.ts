/** The connection to an S3 server: timeouts, retries, and errors. */
import { S3Client } from '@aws-sdk/client-s3'
import { Problem, type ProblemCode } from '../kernel/problem.ts'
import { type S3Options, s3Defaults } from './file-store.ts'
import { placeOfFile } from './uri.ts'

type S3Settings = S3Options & typeof s3Defaults

export interface RequestOptions {
  readonly abortSignal?: AbortSignal
}

export type S3Connection = ReturnType<typeof openS3Connection>

/**
 * A client looks up its credentials once. When they are rejected, the next request uses a new client, which looks them
 * up again, so renewed credentials need no restart of the process.
 *
 * A client also stops retrying after too many passing failures of all its requests together. A request that had fewer
 * tries than configured for this reason is repeated once, by a new client. Replaced clients are closed when their last
 * request has ended.
 */
export function openS3Connection(options: S3Options) {
  const settings: S3Settings = { ...s3Defaults, ...options }
  /** The number of requests that each client is working on. */
  const clients = new Map<S3Client, number>()
  let current: S3Client | undefined

  function takeClient(): S3Client {
    current ??= makeClient(settings)
    clients.set(current, (clients.get(current) ?? 0) + 1)
    return current
  }

  function releaseClient(client: S3Client): void {
    const left = clients.get(client)! - 1
    clients.set(client, left)
    if (left > 0 || client === current) return
    clients.delete(client)
    client.destroy()
  }

  return {
    settings,
    /**
     * Sends a request, tries it again if that may help, and maps its errors to problems. `uri`: the file or folder in
     * question. `question` may be called several times.
     */
    async ask<T>(
      uri: string,
      question: (client: S3Client, options: RequestOptions) => Promise<T>,
      signal?: AbortSignal,
    ): Promise<T> {
      for (let isRepeated = false; ; isRepeated = true) {
        const client = takeClient()
        try {
          return await question(client, signal === undefined ? {} : { abortSignal: signal })
        } catch (error) {
          const problem = s3Problem(error, uri, signal)
          if (!(problem instanceof Problem)) throw problem
          const isGivenUp = !isRepeated && hadFewerTries(error, settings.tries)
          if ((isGivenUp || problem.code === 'FILES_DENIED') && current === client) current = undefined
          if (!isGivenUp) throw problem
        } finally {
          releaseClient(client)
        }
      }
    },
    close(): void {
      for (const client of clients.keys()) client.destroy()
    },
  }
}

export interface Target {
  readonly Bucket: string
  readonly Key: string
  readonly Metadata?: Record<string, string>
}

/** Bucket and key of a URI. */
export function targetOf(uri: string): Target {
  const { bucket, path } = placeOfFile(uri)
  if (Buffer.byteLength(path) > 1024)
    throw new Problem('NAME_REFUSED', { name: path, why: 'it has more than 1024 bytes, the limit of S3' })
  return { Bucket: bucket, Key: path }
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

/** The problems of errors from S3 and the credential lookup. */
const names: Readonly<Record<string, ProblemCode>> = {
  NoSuchBucket: 'FILE_NOT_FOUND',
  NoSuchKey: 'FILE_NOT_FOUND',
  NotFound: 'FILE_NOT_FOUND',
  KeyTooLongError: 'NAME_REFUSED',
  InvalidObjectName: 'NAME_REFUSED',
  XMinioInvalidObjectName: 'NAME_REFUSED',
  AccessDenied: 'FILES_DENIED',
  AllAccessDisabled: 'FILES_DENIED',
  InvalidAccessKeyId: 'FILES_DENIED',
  SignatureDoesNotMatch: 'FILES_DENIED',
  ExpiredToken: 'FILES_DENIED',
  ExpiredTokenException: 'FILES_DENIED',
  InvalidToken: 'FILES_DENIED',
  TokenRefreshRequired: 'FILES_DENIED',
  CredentialsProviderError: 'FILES_DENIED',
  AuthorizationHeaderMalformed: 'FILES_DENIED',
  XMinioStorageFull: 'DISK_FULL',
  QuotaExceeded: 'DISK_FULL',
  InsufficientCapacity: 'DISK_FULL',
}

/** Maps an error to a problem. Returns the reason of an abort, and leaves problems unchanged. */
export function s3Problem(error: unknown, uri: string, signal?: AbortSignal): unknown {
  if (signal?.aborted) return signal.reason
  if (!(error instanceof Error) || error instanceof Problem) return error
  const reason = isUnnamed(error) ? `HTTP ${statusOf(error)}` : `${error.name}: ${error.message}`
  return new Problem(codeFor(error), { uri, why: reason }, error)
}

function codeFor(error: Error): ProblemCode {
  if (Object.hasOwn(names, error.name)) return names[error.name]!
  const status = statusOf(error)
  if (status === 401 || status === 403) return 'FILES_DENIED'
  return status === 507 ? 'DISK_FULL' : 'FILES_UNAVAILABLE'
}

const passingStatuses: readonly (number | undefined)[] = [429, 500, 502, 503, 504]
const passingFaults = ['TimeoutError', 'ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ETIMEDOUT']

/** Whether the client gave up early on an error that may pass. */
function hadFewerTries(error: unknown, tries: number): boolean {
  const {
    name = '',
    code = '',
    $metadata,
  } = error as { name?: string; code?: string; $metadata?: { attempts?: number } }
  const status = statusOf(error as Error)
  const isPassing =
    passingStatuses.includes(status) ||
    (status === undefined && [name, code].some(word => passingFaults.includes(word)))
  return isPassing && ($metadata?.attempts ?? tries) < tries
}

/** Responses to HEAD have no body with an error name. */
function isUnnamed(error: Error): boolean {
  return error.name === 'Unknown' || error.name === 'UnknownError' || error.message === 'UnknownError'
}

function statusOf(error: Error): number | undefined {
  return (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode
}
