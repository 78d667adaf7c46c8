/** Settings that limit requests and connections, so that clients cannot overload the server. */
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
    summary: 'maximum size of a JSON request body',
  },
  maxYamlBytes: {
    check: yamlBytes,
    kind: 'number',
    value: 'BYTES',
    env: 'PAWL_MAX_YAML_BYTES',
    default: longestYaml,
    summary:
      'maximum size of a YAML request body; cannot be raised, because parsing YAML takes far more work than JSON',
  },
  requestSeconds: {
    check: requestSeconds,
    kind: 'number',
    value: 'SECONDS',
    env: 'PAWL_REQUEST_SECONDS',
    default: defaultRequestSeconds,
    summary: 'how long a request may take to arrive, including its body',
  },
  keepAliveSeconds: {
    check: keepAliveSeconds,
    kind: 'number',
    value: 'SECONDS',
    env: 'PAWL_KEEP_ALIVE_SECONDS',
    default: defaultKeepAliveSeconds,
    summary:
      'how long a connection may stay idle between two requests; set it higher than the idle timeout of a load balancer in front',
  },
  maxStreams: {
    check: streamCount,
    kind: 'number',
    value: 'N',
    env: 'PAWL_MAX_STREAMS',
    default: defaultStreams.maxStreams,
    summary: 'maximum number of open event streams',
  },
  maxStreamsPerKey: {
    check: streamCount,
    kind: 'number',
    value: 'N',
    env: 'PAWL_MAX_STREAMS_PER_KEY',
    default: defaultStreams.maxStreamsPerKey,
    summary: 'maximum number of open event streams per API key',
  },
  blockedSeconds: {
    check: blockBound,
    kind: 'number',
    value: 'SECONDS',
    env: 'PAWL_BLOCKED_SECONDS',
    default: 1,
    summary: 'log and count an event loop that is blocked for this long; 0: never',
  },
} as const

export const serverBounds = Object.keys(serverBoundSettings) as (keyof typeof serverBoundSettings)[]
