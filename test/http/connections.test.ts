/** Raw connections, as a malicious program would use them. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import type { ServerOptions } from '../../src/server/options.ts'
import { served } from '../harness/served.ts'

const bounded = { timeout: 600_000 }

async function raw(t: TestContext, server: ServerOptions = {}) {
  const { server: started, engine } = await served(t, { server })
  const open = async (first: string): Promise<Socket> => {
    const socket = connect(Number(new URL(started.url).port), '127.0.0.1')
    t.after(() => socket.destroy())
    await once(socket, 'connect')
    socket.write(first)
    return socket
  }
  return { engine, open }
}

const get = (path: string, ...headers: string[]) =>
  [`GET ${path} HTTP/1.1`, ...headers, 'connection: close', '', ''].join('\r\n')

for (const path of ['/v1/jobs', '/healthz', '/nowhere', '/dialects/jobnik/v1/jobs', '/dialects/falconeri/jobs/list']) {
  test(`a request for ${path} with two Host headers is refused, whichever comes first`, bounded, async t => {
    const { open } = await raw(t)
    for (const hosts of [
      ['host: localhost', 'host: evil.example'],
      ['Host: evil.example', 'HOST: localhost'],
      ['host: localhost', 'host: localhost'],
    ]) {
      const answer = await text(await open(get(path, ...hosts)))
      assert.match(answer, /^HTTP\/1.1 400 /)
      assert.match(answer, /Host/i)
    }
  })
}

test('a request with two keys is refused: a proxy may have looked at the other one', bounded, async t => {
  const { engine, open } = await raw(t)
  const { secret } = await engine.createKey({ name: 'ada', role: 'admin' })
  const keys = [`authorization: Bearer ${secret}`, 'authorization: Bearer pawl_other']
  assert.match(await text(await open(get('/v1/jobs', 'host: localhost', ...keys))), /^HTTP\/1.1 400 /)
  assert.match(await text(await open(get('/v1/jobs', 'host: localhost', keys[0]!))), /^HTTP\/1.1 200 /)
})

test('a connection that sends nothing, or never finishes its request, is closed', bounded, async t => {
  const { open } = await raw(t, { requestSeconds: 1 })
  const starts = {
    nothing: '',
    'half a header': 'GET /healthz HTTP/1.1\r\nhost: local',
    'half a body': `POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n[`,
  }
  for (const [what, start] of Object.entries(starts)) {
    assert.match(await text(await open(start)), /^HTTP\/1.1 408 /, what)
  }
})

test('a connection that sends its request byte by byte is closed', bounded, async t => {
  const { open } = await raw(t, { requestSeconds: 1 })
  const socket = await open('GET /healthz HTTP/1.1\r\nhost: localhost\r\n')
  socket.on('error', () => {})
  const drip = setInterval(() => socket.write('x'), 100)
  t.after(() => clearInterval(drip))
  socket.resume()
  await once(socket, 'close')
})

test('a connection that stays idle after its answer is closed', bounded, async t => {
  const { open } = await raw(t, { keepAliveSeconds: 1 })
  const answer = await text(await open('GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n'))
  assert.match(answer, /^HTTP\/1.1 200 /)
  assert.match(answer, /connection: keep-alive/i)
})
