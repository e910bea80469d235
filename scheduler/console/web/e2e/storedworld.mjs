// A world with stored jobs, for the tests of their pages: two nodes, and jobs that follow each other.
import { launch, open as openPage } from './page.mjs'
import { build, cluster, jobs, stopAll, until } from './world.mjs'

export const yearly = '0 0 1 1 *'

export async function storedWorld() {
  build()
  const c = await cluster({ jobs, nodes: [{ name: 'a1' }, { name: 'a2', http: ', operator_token: operator-token-1, viewer_token: viewer-token-1' }] })
  const home = c.nodes[0].url
  const api = async (path, init) => (await fetch(`${home}/api/v1/${path}`, init)).json()
  const put = async (name, body, q = '') => {
    const r = await fetch(`${home}/api/v1/jobs/${encodeURIComponent(name)}${q}`, { method: 'PUT', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ handler: 'report', ...body }) })
    if (!r.ok) throw new Error(`${name}: ${await r.text()}`)
  }
  /** A stored job as the API writes it. */
  const stored = async (name) => {
    const r = await fetch(`${home}/api/v1/stored-jobs?name=${encodeURIComponent(name)}`)
    return r.ok && (await r.text())
  }
  const shown = (name) => until(name + ' is known', async () => (await api('jobs?q=' + encodeURIComponent(name))).some((j) => j.name === name))
  await put('etl/load', { schedule: '*/5 * * * * *' })
  await put('etl/check', { schedule: '*/5 * * * * *', handler: 'broken' })
  await put('etl/join', { after: ['etl/load', 'etl/check'] })
  await put('etl/alert', { after: ['etl/join'], when: 'failed' })
  await put('etl/clean', {
    after: ['etl/join'], when: 'any', payload: { tenant: 7 }, managed_by: 'tenants', retry: { max: 2, backoff: '1s', on: 'other_node', try_timeout: '5s' }, stall_after: '1m', on_stall: 'cancel',
  })
  await put('bounded', { schedule: yearly, time_zone: 'Europe/Berlin', except: ['2026-12-24..2026-12-26', '2027-01-06'], jitter: '1m', start_at: '2026-01-01T00:00:00Z', end_at: '2090-01-01T00:00:00Z', max_runs: 9 })
  await put('steps', { schedule: yearly, handler: 'steps', ttl: '3s' })
  await put('chosen', { schedule: '@hourly', only: ['2099-01-01'] }).catch(() => {}) // no tick soon: refused
  for (const name of ['bounded', 'steps', 'etl/clean']) await shown(name)
  const browser = await launch()
  const open = (place, { url = home, ...o } = {}) => openPage(browser, url, place, o)
  const end = async () => {
    await browser.close()
    await stopAll()
  }
  return { c, home, api, put, shown, stored, open, end }
}
