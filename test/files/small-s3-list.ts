/** Lists a bucket like S3: keys and common prefixes count alike, in byte order, over any number of pages. */
import type { Bucket } from './small-s3-objects.ts'

const sorted = new WeakMap<Bucket, { size: number; keys: string[] }>()

export function listXml(name: string, bucket: Bucket, query: URLSearchParams): string {
  const [prefix, delimiter] = [bytes(query.get('prefix')), bytes(query.get('delimiter'))]
  const limit = Number(query.get('max-keys') ?? 1000)
  const token = query.get('continuation-token')
  const after = token === null ? bytes(query.get('start-after')) : Buffer.from(token, 'base64url').toString('latin1')
  const encode = query.get('encoding-type') === 'url' ? urlEncoded : escaped
  const keys = keysOf(bucket)
  const items: { key: string; isPrefix: boolean }[] = []
  let at = firstFrom(keys, prefix)
  let isTruncated = false
  for (; at < keys.length && keys[at]!.startsWith(prefix); at += 1) {
    const key = keys[at]!
    const end = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length)
    const item = end < 0 ? { key, isPrefix: false } : { key: key.slice(0, end + delimiter.length), isPrefix: true }
    if (key <= after || item.key === items.at(-1)?.key) continue
    // A continuation after a prefix also skips the keys below it.
    if (token !== null && item.isPrefix && item.key === after) continue
    if (items.length === limit) {
      isTruncated = true
      break
    }
    items.push(item)
  }
  const next = Buffer.from(items.at(-1)?.key ?? '', 'latin1').toString('base64url')
  return `<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>${name}</Name><Prefix>${encode(prefix)}</Prefix>
<MaxKeys>${limit}</MaxKeys><KeyCount>${items.length}</KeyCount><IsTruncated>${isTruncated}</IsTruncated>
${isTruncated ? `<NextContinuationToken>${next}</NextContinuationToken>` : ''}
${encode === urlEncoded ? '<EncodingType>url</EncodingType>' : ''}
${items.map(({ key, isPrefix }) => (isPrefix ? prefixXml(encode(key)) : keyXml(bucket, key, encode(key)))).join('')}
</ListBucketResult>`
}

function prefixXml(prefix: string): string {
  return `<CommonPrefixes><Prefix>${prefix}</Prefix></CommonPrefixes>`
}

function keyXml(bucket: Bucket, key: string, shown: string): string {
  const { size, etag } = bucket.get(key)!
  return `<Contents><Key>${shown}</Key><Size>${size}</Size><ETag>${escaped(etag)}</ETag></Contents>`
}

/** Sorted once while the keys stay the same. */
function keysOf(bucket: Bucket): string[] {
  const known = sorted.get(bucket)
  if (known?.size === bucket.size && known.keys.every(key => bucket.has(key))) return known.keys
  const keys = [...bucket.keys()].sort()
  sorted.set(bucket, { size: bucket.size, keys })
  return keys
}

function firstFrom(keys: readonly string[], prefix: string): number {
  let [low, high] = [0, keys.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (keys[middle]! < prefix) low = middle + 1
    else high = middle
  }
  return low
}

function bytes(text: string | null): string {
  return Buffer.from(text ?? '').toString('latin1')
}

/** As in form encoding, in which a space is a `+`. */
function urlEncoded(latin1: string): string {
  return latin1
    .replace(/[^A-Za-z0-9\-_.~*/ ]/g, char => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`)
    .replaceAll(' ', '+')
}

function escaped(latin1: string): string {
  const text = Buffer.from(latin1, 'latin1').toString()
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
