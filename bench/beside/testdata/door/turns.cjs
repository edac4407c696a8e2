// Takes turns at a lock of the Redis door with node-redlock, of the version that the last argument
// names: see door_test.go.
const fs = require('node:fs')
const { createRequire } = require('node:module')

const [host, port, key, ttl, brief, room, turns, version] = process.argv.slice(2)
const load = createRequire(process.env.LEASEHOLD_DOOR_CLIENTS + '/')
const Redis = load('ioredis')
const Redlock = load(version).default ?? load(version)
const redis = new Redis({ host, port, maxRetriesPerRequest: 1, retryStrategy: () => 20 })
redis.on('error', () => {})
const redlock = new Redlock([redis], { retryCount: 0, automaticExtensionThreshold: 0 })
redlock.on('error', () => {})
redlock.on('clientError', () => {})
const sleep = ms => new Promise(done => setTimeout(done, ms))

async function main() {
  for (; !fs.existsSync(room + '.stop'); await sleep(5)) {
    const asked = performance.now()
    let lock
    try {
      lock = await (redlock.acquire ? redlock.acquire([key], +ttl) : redlock.lock(key, +ttl))
    } catch {
      continue
    }
    if (performance.now() - asked < +brief) {
      fs.closeSync(fs.openSync(room, 'wx'))
      await sleep(2)
      fs.unlinkSync(room)
      fs.appendFileSync(turns, '.')
    }
    await (lock.release ? lock.release() : lock.unlock()).catch(() => {})
  }
  redis.disconnect()
}
main().catch(e => {
  console.error(e)
  process.exit(1)
})
