/** Routes that the server answers without an operation of the engine, for the OpenAPI document. */

import { commonProblems } from '../protocol/operations.ts'
import { flag, ref, text } from '../protocol/shapes.ts'
import type { Schema } from '../schema/check.ts'
import { problemResponses } from './problem-responses.ts'

const alive: Schema = { type: 'object', required: ['ok'], properties: { ok: flag } }

const json = (schema: Schema) => ({ 'application/json': { schema } })

/** A route that needs no key. */
const open = (operationId: string, summary: string, content: Schema): Schema => ({
  operationId,
  summary,
  tags: ['service'],
  security: [],
  parameters: [],
  responses: { 200: { description: summary, content }, ...problemResponses(['REQUEST_INVALID', 'SERVER_CLOSING']) },
})

const ready = open(
  'ready',
  'Whether the store accepts writes. For the readiness probe of a load balancer.',
  json(alive),
)

export const servicePaths: Readonly<Record<string, { readonly get: Schema }>> = {
  '/v1/me': {
    get: {
      operationId: 'me',
      summary: 'Who asks, and what its key may do.',
      tags: ['me'],
      parameters: [],
      responses: { 200: { description: 'Who asks.', content: json(ref('Me')) }, ...problemResponses(commonProblems) },
    },
  },
  '/healthz': { get: open('health', 'Whether the process runs. For a liveness probe.', json(alive)) },
  '/readyz': {
    get: { ...ready, responses: { ...(ready.responses as Schema), ...problemResponses(commonProblems) } },
  },
  '/metrics': {
    get: {
      operationId: 'metrics',
      summary: 'Counters, gauges and histograms in the text format of Prometheus.',
      description: 'Needs the permission `read`.',
      tags: ['service'],
      parameters: [],
      responses: {
        200: { description: 'All metrics.', content: { 'text/plain': { schema: text } } },
        ...problemResponses(commonProblems),
      },
    },
  },
  '/openapi.json': { get: open('openApi', 'This document.', json({ type: 'object' })) },
  '/docs': { get: open('docs', 'The routes and problems as a page for people.', { 'text/html': { schema: text } }) },
}
