import assert from 'node:assert'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { hold, BusyError, LeaseholdError, LostError } from './leasehold.mjs'

// serve starts a leasehold serve in a process of its own. $LEASEHOLD names the command.
async function serve(t, store, { listen = '127.0.0.1:0', flags = [] } = {}) {
  const child = spawn(process.env.LEASEHOLD ?? 'leasehold', ['serve', '--store', store, '--listen', listen, ...flags], { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = new Promise(resolve => child.on('exit', resolve))
  const kill = () => { child.kill('SIGKILL'); return ended }
  t.after(kill)
  for await (const line of createInterface({ input: child.stderr })) {
    const url = /https?:\/\/[^/]*/.exec(line)?.[0]
    if (url) return { url, host: url.slice(7), kill }
  }
  throw new Error('the server does not start')
}

function folder(t) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'leasehold-node-'))
  t.after(() => fs.rmSync(dir, { recursive: true, force: true }))
  return dir
}

const never = () => assert.fail('two holders')

test('hold and release', async t => {
  const { url } = await serve(t, 'memory:')
  let first
  const result = await hold('a/b.c %', async lease => {
    first = lease
    assert(lease.token > 0 && lease.left() > 20000)
    await assert.rejects(hold('a/b.c %', never, { url, wait: 0 }), e => e instanceof BusyError && e.holder.purpose === 'first')
    await assert.rejects(hold('a/b.c %', never, { url, wait: 200 }), BusyError)
    return 42
  }, { url, purpose: 'first' })
  assert.equal(result, 42)
  assert.equal(first.left(), 0)
  assert.throws(() => first.check(), LostError)
  await hold('a/b.c %', second => assert(second.token > first.token), { url, wait: 0 })
})

test('kinds, names, and errors of the work', async t => {
  const { url } = await serve(t, 'memory:')
  await hold('..', () => hold('..', async () => {
    await assert.rejects(hold('..', never, { url, kind: 'write', wait: 0 }), BusyError)
  }, { url, kind: 'read', wait: 0 }), { url, kind: 'read' })
  const permit = { url, kind: 'semaphore', permits: 2, wait: 0 }
  await hold('s', () => hold('s', () => {}, permit), permit)
  await assert.rejects(hold('a', () => { throw new RangeError('mine') }, { url }), RangeError)
  await hold('a', () => {}, { url, wait: 0 })
})

test('a wait ends with its signal', async t => {
  const { url } = await serve(t, 'memory:')
  const ac = new AbortController()
  await hold('a', async () => {
    const wait = hold('a', never, { url, signal: ac.signal })
    setTimeout(() => ac.abort(), 100)
    await assert.rejects(wait, { name: 'AbortError' })
  }, { url })
})

test('a short lease is renewed', async t => {
  const { url } = await serve(t, 'memory:')
  await hold('a', lease => sleep(4000).then(() => lease.check()), { url, ttl: 2000 })
})

test('a killed server loses the lease in time', async t => {
  const server = await serve(t, 'memory:')
  const held = hold('a', async lease => {
    const at = performance.now()
    await server.kill()
    await new Promise(resolve => lease.signal.addEventListener('abort', resolve))
    assert(performance.now() - at < 3000)
    assert.equal(lease.left(), 0)
    assert(lease.signal.reason instanceof LostError)
  }, { url: server.url, ttl: 3000 })
  await assert.rejects(held, LostError)
})

test('a hold goes on at another server', async t => {
  const store = 'file:' + folder(t)
  const one = await serve(t, store)
  const two = await serve(t, store)
  await hold('a', async lease => {
    const { token } = lease
    await one.kill()
    await sleep(6000)
    lease.check()
    assert.equal(lease.token, token)
    await assert.rejects(hold('a', never, { url: two.url, wait: 0 }), BusyError)
  }, { url: `${one.url},${two.host}`, ttl: 4000 })
  await hold('a', () => {}, { url: two.url, wait: 0 })
})

// A connection that brings nothing any more is replaced, or the loss is told in time.
test('a silent connection', async t => {
  const server = await serve(t, 'memory:')
  const sockets = []
  const proxy = net.createServer(near => {
    const far = net.connect(server.host.split(':')[1], '127.0.0.1')
    near.pipe(far).pipe(near)
    for (const s of [near, far]) sockets.push(s.on('error', () => {}))
  })
  await new Promise(resolve => proxy.listen(0, '127.0.0.1', resolve))
  const end = () => { proxy.close(); sockets.forEach(s => s.destroy()) }
  const freeze = () => sockets.forEach(s => s.unpipe().pause())
  t.after(end)
  let early
  const held = hold('a', async lease => {
    freeze()
    await sleep(8000)
    early = lease.left() === 0
    freeze()
    proxy.close()
    const at = performance.now()
    if (!early) await new Promise(resolve => lease.signal.addEventListener('abort', resolve))
    assert(early || performance.now() - at < 4000)
  }, { url: `http://127.0.0.1:${proxy.address().port}`, ttl: 4000 })
  await assert.rejects(held, LostError)
  assert(!early, 'the lease was lost, though the server could be reached')
})

test('a broken lease is lost', async t => {
  const { url } = await serve(t, 'memory:')
  await assert.rejects(hold('a', async lease => {
    const lost = new Promise(resolve => lease.signal.addEventListener('abort', resolve))
    const r = await fetch(`${url}/v1/locks/a/break`, { method: 'POST', body: JSON.stringify({ token: lease.token, now: true, reason: 'test' }) })
    assert.equal(r.status, 200)
    await lost
  }, { url }), LostError)
})

// Four holders take turns while the first of two servers is killed again and again.
test('two holders never overlap', async t => {
  const store = 'file:' + folder(t)
  const mark = path.join(folder(t), 'held')
  let first = await serve(t, store)
  const second = await serve(t, store)
  const url = `${first.url},${second.host}`
  let turns = 0
  let stop = false
  const work = async () => {
    while (!stop) {
      await hold('a', async () => {
        fs.mkdirSync(mark)
        await sleep(10)
        fs.rmdirSync(mark)
        turns++
      }, { url, ttl: 3000, wait: 60000 })
    }
  }
  const all = Promise.all([work(), work(), work(), work()])
  all.catch(() => { stop = true })
  const more = async n => { for (const before = turns; turns < before + n && !stop;) await sleep(50) }
  for (let i = 0; i < 2; i++) {
    await more(5)
    await first.kill()
    first = await serve(t, store, { listen: first.host })
  }
  await more(5)
  stop = true
  await all
})

test('refused rights', async t => {
  const dir = folder(t)
  const rights = path.join(dir, 'rights.json')
  const tokenFile = path.join(dir, 'token')
  fs.writeFileSync(rights, JSON.stringify({ clients: [{ name: 'ci', token_sha256: [createHash('sha256').update('secret').digest('hex')], rules: [{ prefix: 'ci/', rights: ['lock'] }] }] }))
  fs.writeFileSync(tokenFile, 'secret\n')
  const { url } = await serve(t, 'memory:', { flags: ['--rights', rights] })
  await hold('ci/a', () => hold('ci/b', () => {}, { url, token: 'secret' }), { url, tokenFile })
  for (const [name, token, kind] of [['a', 'secret', 'forbidden'], ['ci/a', 'guess', 'unauthorized']]) {
    await assert.rejects(hold(name, never, { url, token }), e => e instanceof LeaseholdError && e.kind === kind && e.advice && !e.message.includes(token))
  }
})

test('nothing answers', async t => {
  const server = await serve(t, 'memory:')
  await server.kill()
  await assert.rejects(hold('a', never, { url: server.url }), { kind: 'unreachable' })
  for (const url of ['http://locks.example:7420', 'redis://127.0.0.1', 'https://user:secret@locks.example']) {
    await assert.rejects(hold('a', never, { url }), e => e instanceof TypeError && !e.message.includes('secret'))
  }
})
