import { checkOptions, type Fields, field, nested, number, text } from '../schema/check.ts'

export interface S3Options {
  /** Where the server is. Default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile; else Amazon's. */
  readonly endpoint?: string
  /** Default: AWS_REGION; where no endpoint is named, the profile; else us-east-1. */
  readonly region?: string
  /** The bucket stands in the path and not in the host's name. Default: unless the server is Amazon's. */
  readonly forcePathStyle?: boolean
  /** Default: the usual chain (environment, profile, web identity, container, machine). */
  readonly credentials?: {
    readonly accessKeyId: string
    readonly secretAccessKey: string
    readonly sessionToken?: string
  }
  /** A file that is larger is sent in parts of this size, four at once. Default 16 MiB; parts of huge files are larger. */
  readonly partBytes?: number
  /** A larger one is copied in parts of this size, four at once. Default 1 GiB, so that no request takes long. */
  readonly copyBytes?: number
  /** Names asked for at once. Default 1000, the most that S3 gives. */
  readonly pageSize?: number
  /** A server that is silent for so long is given up, and the request tried again. Default 60. */
  readonly silenceSeconds?: number
  /** How often a request is tried in all. Default 5. */
  readonly tries?: number
}

const mebibyte = 1 << 20

const fields: Fields = {
  endpoint: field({}, value =>
    typeof value === 'string' && /^https?:\/\/[^/]/.test(value) ? undefined : 'be an address: http://… or https://…',
  ),
  region: text(100),
  forcePathStyle: field({}, value => (typeof value === 'boolean' ? undefined : 'be true or false')),
  credentials: nested({ accessKeyId: text(1000), secretAccessKey: text(1000), sessionToken: text(10_000) }, [
    'accessKeyId',
    'secretAccessKey',
  ]),
  partBytes: number({ from: 5 * mebibyte, to: 512 * mebibyte, whole: true }),
  copyBytes: number({ from: 5 * mebibyte, to: 5120 * mebibyte, whole: true }),
  pageSize: number({ from: 1, to: 1000, whole: true }),
  silenceSeconds: number({ from: 0.1, to: 3600 }),
  tries: number({ from: 1, to: 20, whole: true }),
}

export function checkS3Options(options: S3Options): void {
  checkOptions(options, fields, 's3')
}

export const s3Defaults = {
  partBytes: 16 * mebibyte,
  copyBytes: 1024 * mebibyte,
  pageSize: 1000,
  silenceSeconds: 60,
  tries: 5,
}
