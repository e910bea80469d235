// Real nodes and a real Redis for a test, on free ports of the loopback, ended by their own process ids.
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { request as httpRequest, createServer as createHttp } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
export const dir = mkdtempSync(join(tmpdir(), 'console-e2e-'))
const program = join(dir, 'escapement')
const started = []
const proxies = []

export const pause = (ms) => new Promise((done) => setTimeout(done, ms))

export async function until(what, holds, within = 20_000) {
  for (const end = Date.now() + within; ; await pause(50)) {
    const got = await Promise.resolve(holds()).catch(() => false)
    if (got) return got
    if (Date.now() > end) throw new Error(`not so after ${within} ms: ${what}`)
  }
}

const freePort = () =>
  new Promise((done) => {
    const s = createServer().listen(0, '127.0.0.1', () => {
      const { port } = s.address()
      s.close(() => done(port))
    })
  })

export function build() {
  const got = spawnSync('go', ['build', '-buildvcs=false', '-o', program, './cmd/escapement'], { cwd: root, stdio: 'inherit' })
  if (got.status !== 0) throw new Error('the program does not build')
}

const answers = (port) =>
  new Promise((done, fail) => {
    const s = connect(port, '127.0.0.1', () => (s.destroy(), done(true)))
    s.on('error', fail)
  })

function begin(command, args, options = {}) {
  const p = spawn(command, args, { cwd: dir, stdio: ['ignore', 'pipe', 'pipe'], ...options })
  p.text = ''
  for (const s of [p.stdout, p.stderr]) s.on('data', (d) => (p.text = (p.text + d).slice(-20_000)))
  p.gone = new Promise((done) => p.on('exit', (code, signal) => (p.ended || console.log(`${command} ${args[0]} ended by itself: ${code ?? signal}\n${p.text}`), done(code))))
  started.push(p)
  return p
}

export async function end(p, signal = 'SIGTERM') {
  p.ended = true
  if (p.exitCode === null && p.signalCode === null) p.kill(signal)
  await p.gone
}

/** Ends all that was begun, the last first. */
export async function stopAll() {
  for (const s of proxies) s.close()
  for (const p of started.reverse()) await end(p, 'SIGKILL')
  rmSync(dir, { recursive: true, force: true })
}

/** A cluster: a Redis, and a node for each of some settings. */
export async function cluster({ jobs, nodes, http = '' }) {
  const port = await freePort()
  const redis = begin('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--loglevel', 'warning'])
  await until('Redis answers', () => answers(port))
  const url = `redis://127.0.0.1:${port}/0`
  const env = { ...process.env, ESCAPEMENT_REDIS_URL: url, NO_COLOR: '1' }
  const running = []
  const run = async (n, at) => {
    const file = join(dir, `${n.name}-${at}.yaml`)
    writeFileSync(file, `node: {name: ${n.name}, generation: "${n.generation ?? ''}", revision: "${n.revision ?? '1'}", drain_timeout: 1s}\nhttp: {listen: "127.0.0.1:${at}"${http}${n.http ?? ''}}\n${n.jobs ?? jobs}`)
    const p = begin(program, ['run', '--config', file], { env })
    const base = `http://127.0.0.1:${at}`
    await until(`${n.name} is ready: ${p.text}`, async () => {
      return p.exitCode !== null || (await fetch(base + '/readyz')).ok
    }, 60_000).catch((e) => {
      throw new Error(`${e.message}\n${p.text}`)
    })
    if (p.exitCode !== null) throw new Error(p.text)
    return { ...n, url: base, port: at, process: p }
  }
  for (const n of nodes) running.push(await run(n, await freePort()))
  /** Ends a node, and starts it again at the same address with other settings. */
  const restart = async (n, change = {}) => {
    await end(n.process)
    Object.assign(n, await run({ ...n, ...change }, n.port))
  }
  const cli = (...args) => {
    const got = spawnSync(program, args, { cwd: dir, env, encoding: 'utf8' })
    return { code: got.status, out: got.stdout, err: got.stderr }
  }
  return { redis, url, nodes: running, restart, cli, begin: (...args) => begin(program, args, { env }) }
}

/** A proxy of a page below a path, which takes the path away or leaves it. */
export async function proxy(target, path, strip) {
  const server = createHttp((req, res) => {
    if (!req.url.startsWith(path + '/')) return void res.writeHead(404).end('not here')
    const to = new URL(target)
    const out = httpRequest(
      { host: to.hostname, port: to.port, method: req.method, path: strip ? req.url.slice(path.length) : req.url, headers: req.headers },
      (got) => {
        res.writeHead(got.statusCode, got.headers)
        got.pipe(res)
      },
    )
    out.on('error', () => res.destroy())
    res.on('close', () => out.destroy())
    req.pipe(out)
  })
  await new Promise((done) => server.listen(0, '127.0.0.1', done))
  proxies.push({ close: () => (server.closeAllConnections(), server.close()) })
  return `http://127.0.0.1:${server.address().port}${path}`
}

export const jobs = `
handlers:
  report: {exec: {command: [sh, -c, 'echo "report: $ESCAPEMENT_PAYLOAD"']}}
  steps: {exec: {command: [sh, -c, 'echo "120 200 copying" > "$ESCAPEMENT_PROGRESS_FILE"; sleep 600'], checkpoints: files}}
  broken: {exec: {command: ["false"]}}
jobs:
  - {name: beat, schedule: "* * * * * *", exec: {command: [sh, -c, 'echo "beat of $ESCAPEMENT_TICK on $ESCAPEMENT_NODE"']}}
  - {name: slow, schedule: "@every 3s", overlap: skip, exec: {command: [sh, -c, 'sleep 4']}}
  - {name: flaky, schedule: "*/4 * * * * *", exec: {command: [sh, -c, 'echo trying; if [ $((ESCAPEMENT_TICK_MS / 4000 % 3)) = 0 ]; then echo "the disk is full" >&2; exit 3; fi']}}
  - {name: parts, schedule: "*/5 * * * * *", shards: 3, params: [eu, us, asia], exec: {command: [sh, -c, 'sleep 0.$ESCAPEMENT_SHARD; echo "part $ESCAPEMENT_PARAM"']}}
  - {name: totals, after: parts, exec: {command: [sh, -c, 'echo sum']}}
  - {name: nightly/backup, schedule: "30 2 * * *", time_zone: Europe/Berlin, timeout: 10m, retry: {max: 2, backoff: 1s}, exec: {command: [sh, -c, 'echo "payload: $ESCAPEMENT_PAYLOAD"']}}
  - {name: long, schedule: "0 0 1 1 *", exec: {command: [sh, -c, 'sleep 600']}}
  - {name: hourly-report, schedule: "0 * * * *", time_zone: America/New_York, exec: {command: [sh, -c, 'echo report']}}
  - {name: again, schedule: "0 0 1 1 *", exec: {command: [sh, -c, 'sleep 1; test "$ESCAPEMENT_ATTEMPT" -gt 1']}}
  - {name: nowhere, schedule: "@hourly", labels: {disk: fast}, exec: {command: [sh, -c, 'echo never']}}
`
