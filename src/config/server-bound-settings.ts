/** Settings that bound the requests of strangers, and the connections they come on. */
import {
  blockBound,
  bodyBytes,
  defaultBodyBytes,
  defaultKeepAliveSeconds,
  defaultRequestSeconds,
  defaultStreams,
  keepAliveSeconds,
  requestSeconds,
  streamCount,
  yamlBytes,
} from '../server/options.ts'
import { longestYaml } from '../spec/yaml-limits.ts'

export const serverBoundSettings = {
  maxBodyBytes: {
    check: bodyBytes,
    kind: 'number',
    value: 'BYTES',
    env: 'PAWL_MAX_BODY_BYTES',
    default: defaultBodyBytes,
    says: 'the largest JSON body of a request',
  },
  maxYamlBytes: {
    check: yamlBytes,
    kind: 'number',
    value: 'BYTES',
    env: 'PAWL_MAX_YAML_BYTES',
    default: longestYaml,
    says: 'the largest YAML body of a request; cannot be raised, because YAML takes far more work to read than JSON',
  },
  requestSeconds: {
    check: requestSeconds,
    kind: 'number',
    value: 'SECONDS',
    env: 'PAWL_REQUEST_SECONDS',
    default: defaultRequestSeconds,
    says: 'how long a request may take to arrive, headers and body',
  },
  keepAliveSeconds: {
    check: keepAliveSeconds,
    kind: 'number',
    value: 'SECONDS',
    env: 'PAWL_KEEP_ALIVE_SECONDS',
    default: defaultKeepAliveSeconds,
    says: 'how long a connection may stay idle between two requests; longer than a load balancer in front keeps its own',
  },
  maxStreams: {
    check: streamCount,
    kind: 'number',
    value: 'N',
    env: 'PAWL_MAX_STREAMS',
    default: defaultStreams.maxStreams,
    says: 'how many streams of events may be open at once',
  },
  maxStreamsPerKey: {
    check: streamCount,
    kind: 'number',
    value: 'N',
    env: 'PAWL_MAX_STREAMS_PER_KEY',
    default: defaultStreams.maxStreamsPerKey,
    says: 'how many streams of events clients with one key may have open',
  },
  blockedSeconds: {
    check: blockBound,
    kind: 'number',
    value: 'SECONDS',
    env: 'PAWL_BLOCKED_SECONDS',
    default: 1,
    says: 'log and count an event loop that is blocked for this long; 0: do not watch it',
  },
} as const

export const serverBounds = Object.keys(serverBoundSettings) as (keyof typeof serverBoundSettings)[]
