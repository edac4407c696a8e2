// Locks of a "leasehold serve". See README.md.
import { readFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import os from 'node:os'

const SILENCE = 30000 // without a line for so long, a server counts as gone; it writes every ten seconds
const LONGEST = 1 << 20 // characters of a line
const ANEW = 3600000 // after so long a hold begins anew, since clocks differ in speed
const TICK = 20 // more than the resolution of the clock

// now is in milliseconds, by a clock that goes on while the machine sleeps.
const now = ['linux', 'win32'].includes(os.platform()) ? () => os.uptime() * 1000 : () => performance.now()
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))

// LeaseholdError is a refusal by the server, or no answer. kind is the last word of the problem's
// type, such as 'busy' or 'forbidden', or 'unreachable'. holder describes the holder, if known.
export class LeaseholdError extends Error {
  constructor(kind, detail, problem = {}) {
    super(`${kind}: ${detail}` + (problem.advice ? ` (${problem.advice})` : ''))
    Object.assign(this, { name: new.target.name, kind, detail, problem })
    Object.assign(this, { status: problem.status, advice: problem.advice, holder: problem.holder, expiresIn: problem.expires_in_ms })
  }
}
// BusyError: another owner had the lock for as long as this one wanted to wait.
export class BusyError extends LeaseholdError {}
// LostError: the lease is over, or is about to be. Stop what it protects.
export class LostError extends LeaseholdError {
  constructor(why) { super('lost', why) }
}

// hold calls work(lease) while it holds the lock called name, and returns its result. It rejects
// with a LostError if the lease was lost meanwhile. Options: ttl and wait in milliseconds (no wait
// has no bound, 0 does not wait), kind, permits, weight, purpose, signal (ends the wait), url,
// token, tokenFile, ca, cert and key (as of node:tls).
export async function hold(name, work, options = {}) {
  const lease = new Lease(name, options)
  await lease.acquire()
  try {
    const result = await work(lease)
    lease.check()
    return result
  } finally {
    await lease.end()
  }
}

// Lease is a lock that is held. token is the fencing token, a larger one with each grant. signal
// aborts a twentieth of the TTL before the lease ends, unless it is renewed.
class Lease {
  #servers; #path; #fields; #wait; #giveUp; #margin; #silence; #deadline; #stream; #watch
  #lost = new AbortController()
  #ended = false

  constructor(name, { ttl = 30000, wait, kind, permits, weight, purpose, signal, ...servers }) {
    this.name = name
    this.signal = this.#lost.signal
    this.#servers = new Servers(servers)
    this.#path = `/v1/locks/${quote(name)}`
    this.#fields = { ttl_ms: ttl, kind, permits, weight, purpose, keep: true }
    this.#wait = wait
    this.#giveUp = signal
    this.#margin = ttl / 20 + TICK
    this.#silence = Math.min(SILENCE, ttl / 2) // the server writes more often than that
  }

  // left is for how many milliseconds the lease is valid, 0 if it is lost.
  left() {
    if (this.#ended || this.signal.aborted) return 0
    const left = Math.max(0, this.#deadline - this.#margin - now())
    if (left === 0) this.#lose('the lease was not renewed in time')
    return left
  }

  // check throws if the lease is lost.
  check() {
    if (this.left() === 0) throw this.signal.reason ?? new LostError('the lease was released')
  }

  // acquire waits for the lock, and begins anew at another server if one is gone.
  async acquire() {
    const until = this.#wait === undefined ? undefined : now() + this.#wait
    let heard // when a server last answered
    for (;;) {
      let failed
      for (const host of this.#servers.hosts) {
        this.#giveUp?.throwIfAborted()
        const left = until === undefined ? undefined : Math.max(0, Math.round(until - now()))
        const stream = new Stream(this.#servers, host)
        const stop = () => stream.close()
        this.#giveUp?.addEventListener('abort', stop)
        let got = false
        try {
          await stream.open(`${this.#path}/hold`, { ...this.#fields, wait_ms: left })
          for await (const event of stream.events()) {
            heard = now()
            if (event.event === 'held') {
              Object.assign(this, { owner: event.owner, token: event.token, slot: event.slot })
              this.#deadline = stream.deadline(event)
              got = true
              stream.bePatient(this.#silence)
              this.#follow(stream)
              this.#watch = setInterval(() => this.left(), Math.min(250, this.#fields.ttl_ms / 40))
              return
            }
            if (event.event === 'failed') throw errorOf(event)
            if (event.event === 'leaving') break
          }
        } catch (e) {
          this.#giveUp?.throwIfAborted()
          if (e instanceof LeaseholdError && e.kind !== 'leaving') throw e
          failed = e
        } finally {
          this.#giveUp?.removeEventListener('abort', stop)
          if (!got) stream.close()
        }
      }
      if (heard === undefined || now() - heard > SILENCE || until !== undefined && now() >= until) {
        throw new LeaseholdError('unreachable', `no server at ${this.#servers.hosts} answers: ${failed?.message}`)
      }
      await sleep(200)
    }
  }

  // follow reads what the server says of the lease, and goes on elsewhere if it says no more.
  async #follow(stream) {
    while (!this.#ended && !this.signal.aborted) {
      this.#stream = stream
      try {
        for await (const event of stream.events()) {
          if (event.event === 'lost' || event.token !== undefined && event.token !== this.token) {
            return this.#lose(event.reason ?? 'another lease was granted')
          }
          if (event.event === 'failed') throw errorOf(event)
          if (event.event === 'held' || event.event === 'leaving') this.#deadline = Math.max(this.#deadline, stream.deadline(event))
          if (event.event === 'leaving' || now() - stream.sent > ANEW) break
        }
      } catch (e) {
        if (e.kind === 'not-held') return this.#lose(e.detail)
      }
      stream.close()
      for (const host of this.#servers.hosts) { // nobody else can have the lock before the deadline
        if (this.#ended) return
        stream = new Stream(this.#servers, host, this.#silence / 4)
        this.#stream = stream
        try {
          await stream.open(`${this.#path}/hold`, { ...this.#fields, owner: this.owner })
          stream.bePatient(this.#silence)
          break
        } catch (e) {
          stream.close()
          if (e.kind === 'not-held') return this.#lose(e.detail)
        }
      }
      await sleep(200)
    }
    stream.close()
  }

  #lose(why) {
    if (!this.#ended) this.#lost.abort(new LostError(why))
    clearInterval(this.#watch)
  }

  // end releases the lock. If no server answers, it is free when the TTL is over.
  async end() {
    this.#ended = true
    clearInterval(this.#watch)
    const until = Math.min(this.#deadline, now() + 5000)
    for (;;) {
      for (const host of this.#servers.hosts) {
        const stream = new Stream(this.#servers, host, 5000)
        try {
          await stream.open(`${this.#path}/release`, { owner: this.owner })
          return this.#stream.close()
        } catch (e) {
          const again = !(e instanceof LeaseholdError) || ['leaving', 'no-quorum', 'store-failed', 'too-late', 'too-many'].includes(e.kind)
          if (!again) return this.#stream.close()
        } finally {
          stream.close()
        }
      }
      if (now() >= until) return this.#stream.close()
      await sleep(200)
    }
  }
}

class Servers {
  constructor({ url, token, tokenFile, ca, cert, key }) {
    url ??= /^https?:/.test(process.env.LEASEHOLD_STORE ?? '') ? process.env.LEASEHOLD_STORE : 'http://127.0.0.1:7420'
    const [, scheme, hosts, base] = /^(https?):\/\/([^/?#@]+)([^?#]*)$/.exec(url) ?? []
    if (!scheme) throw new TypeError('url is not https://HOST:PORT or http://HOST:PORT: give a token as token or tokenFile')
    Object.assign(this, { scheme, hosts: hosts.split(','), base: base.replace(/\/+$/, ''), token, tokenFile, tls: { ca, cert, key } })
    for (const host of this.hosts) {
      const name = new URL(`${scheme}://${host}`).hostname.replace(/^\[|\]$/g, '')
      const local = name === 'localhost' || name === '::1' || net.isIPv4(name) && name.startsWith('127.')
      if (scheme === 'http' && !local) throw new TypeError(`http:// is for this machine: use https:// for ${host}`)
    }
  }

  headers() {
    const token = this.tokenFile ? readFileSync(this.tokenFile, 'utf8').trim() : this.token ?? process.env.LEASEHOLD_TOKEN
    const headers = { 'Content-Type': 'application/json', Accept: 'application/x-ndjson' }
    return token ? { ...headers, Authorization: `Bearer ${token}` } : headers
  }
}

// Stream is one request and the lines of its answer.
class Stream {
  #servers; #host; #silence; #request; #response; #parts
  #lines = [''] // the last one is not whole yet
  #closed = false

  constructor(servers, host, silence = SILENCE) {
    this.#servers = servers
    this.#host = host
    this.#silence = silence
  }

  // open sends the request, and throws the problem if it is refused.
  async open(path, body) {
    const { scheme, base, tls } = this.#servers
    const headers = this.#servers.headers()
    this.sent = now()
    this.#response = await new Promise((resolve, reject) => {
      if (this.#closed) throw new Error('the request was given up')
      const { hostname, port } = new URL(`${scheme}://${this.#host}`) // which would resolve the dots of a path
      this.#request = (scheme === 'https' ? https : http).request({ method: 'POST', host: hostname.replace(/^\[|\]$/g, ''), port,
        path: base + path, headers, timeout: this.#silence, agent: false, ...tls }, resolve)
      this.#request.on('error', reject)
      this.#request.on('timeout', () => this.#request.destroy(new Error('the server is silent')))
      this.#request.end(JSON.stringify(body))
    })
    this.#response.on('error', () => {}) // a reader is told
    this.#parts = this.#response.setEncoding('utf8')[Symbol.asyncIterator]()
    if (this.#response.statusCode < 300) return
    let text = ''
    for await (const part of this.#parts) if ((text += part).length > LONGEST) break
    let problem
    try { problem = JSON.parse(text) } catch { /* it is of another server */ }
    const { statusCode: status } = this.#response
    throw errorOf(problem?.type ? problem : { status, detail: `${this.#host} is no leasehold serve: status ${status}` })
  }

  // events yields the lines that no earlier call has yielded, and throws at their end.
  async * events() {
    for (;;) {
      while (this.#lines.length > 1) yield JSON.parse(this.#lines.shift())
      const { value, done } = await this.#parts.next()
      if (done) throw new Error('the answer ends')
      this.#lines = (this.#lines[0] + value).split('\n')
      if (this.#lines.at(-1).length > LONGEST) throw new Error('a line is too long')
    }
  }

  // deadline is when the lease of a held line ends, if no later line says more.
  deadline({ at_ms, valid_ms }) { return Math.min(this.sent + at_ms, now()) + valid_ms }

  // bePatient has events throw after so many milliseconds without a line.
  bePatient(ms) { this.#request.setTimeout(ms) }

  close() {
    this.#closed = true
    this.#request?.destroy()
  }
}

function errorOf(problem) {
  const kind = (problem.type ?? '').split('#').at(-1) || 'http'
  return new (kind === 'busy' ? BusyError : LeaseholdError)(kind, problem.detail ?? '', problem)
}

const quote = name => name === '.' || name === '..' ? name.replaceAll('.', '%2E') : encodeURIComponent(name)
