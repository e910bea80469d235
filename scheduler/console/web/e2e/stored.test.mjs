// Stored jobs in a real browser: forms, the preview of ticks, the graph, and what runs say of themselves.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { act, audited, launch, looks, open as openPage, sound } from './page.mjs'
import { build, cluster, jobs, stopAll, until } from './world.mjs'

let c
let browser
let home

const open = (place, { url = home, ...o } = {}) => openPage(browser, url, place, o)
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
const yearly = '0 0 1 1 *'
const shown = (name) => until(name + ' is known', async () => (await api('jobs?q=' + encodeURIComponent(name))).some((j) => j.name === name))

/** Fills the form in, and presses its button. */
async function store(page, fields, reason = 'tested') {
  for (const [name, value] of Object.entries(fields)) {
    const input = page.locator(`form.store [name=${name}]`)
    if ((await input.evaluate((e) => e.tagName)) === 'SELECT') await input.selectOption(value)
    else await input.fill(value)
  }
  await page.locator('form.store [name=author]').fill('ann')
  await page.locator('form.store [name=reason]').fill(reason)
  await page.getByRole('button', { name: 'Store' }).click()
}

/** What is said at a field of the form. */
const at = (page, field, text) => page.locator('#fault-' + field, { hasText: text })

before(async () => {
  build()
  c = await cluster({ jobs, nodes: [{ name: 'a1' }, { name: 'a2', http: ', operator_token: operator-token-1, viewer_token: viewer-token-1' }] })
  home = c.nodes[0].url
  await put('etl/load', { schedule: '*/5 * * * * *' })
  await put('etl/check', { schedule: '*/5 * * * * *', handler: 'broken' })
  await put('etl/join', { after: ['etl/load', 'etl/check'] })
  await put('etl/alert', { after: ['etl/join'], when: 'failed' })
  await put('etl/clean', {
    after: ['etl/join'], when: 'any', payload: { tenant: 7 }, managed_by: 'tenants', retry: { max: 2, backoff_ms: 1000, on: 'other_node', try_timeout_ms: 5000 }, stall_after_ms: 60000, on_stall: 'cancel',
  })
  await put('bounded', { schedule: yearly, time_zone: 'Europe/Berlin', except: ['2026-12-24..2026-12-26', '2027-01-06'], jitter_ms: 60000, start_at: '2026-01-01T00:00:00Z', end_at: '2090-01-01T00:00:00Z', max_runs: 9 })
  await put('steps', { schedule: yearly, handler: 'steps', ttl_ms: 3000 })
  await put('chosen', { schedule: '@hourly', only: ['2099-01-01'] }).catch(() => {}) // no tick soon: refused
  for (const name of ['bounded', 'steps', 'etl/clean']) await shown(name)
  browser = await launch()
})
after(async () => {
  await browser?.close()
  await stopAll()
})

describe('pages', () => {
  let run
  before(async () => {
    await api('jobs/steps/runs', { method: 'POST' })
    run = await until('the run says how far it is', async () => (await api('runs?job=steps&outcome=running')).find((r) => r.progress))
    await until('a run of etl/check failed', async () => (await api('runs?job=etl%2Fcheck&outcome=failed'))[0])
  })
  after(async () => {
    await fetch(`${home}/api/v1/runs/${run.run}/cancel`, { method: 'POST' })
  })
  for (const [look, options] of Object.entries(looks))
    test(`each page, ${look}: its content, no errors, no requests elsewhere, and axe finds nothing`, async () => {
      const page = await open('jobs', { options })
      const places = {
        graph: 'all succeeded', store: 'New stored job', 'store/etl%2Fclean': 'More settings', 'store/bounded': 'the clock goes from', 'jobs/etl%2Fclean': 'on another node', 'jobs/bounded': 'max_runs',
        'jobs/steps': '120 of 200, 60 %, copying', ['runs/' + run.run]: '120 of 200, 60 %, copying', 'store/nope': 'no job nope is stored',
      }
      for (const [place, has] of Object.entries(places)) {
        await page.go(place)
        await page.locator('main', { hasText: has }).waitFor()
        await sound(page, place)
      }
      page.errors = page.errors.filter((e) => !/404.*nope/.test(e))
      assert.deepEqual(page.errors, [])
      assert.deepEqual(page.outside, [])
      await page.context().close()
    })

  test("a job's page has all that is set", async () => {
    const page = await open('jobs/etl%2Fclean')
    const setting = (name) => page.locator('section[aria-label=Settings] dt', { hasText: name }).locator('xpath=following-sibling::dd').innerText()
    for (const [name, text] of Object.entries({ handler: 'report', managed_by: 'tenants', retry: '2, first after 1.00 s, on another node', try_timeout: '5.00 s', stall_after: '1 min, then cancel' })) assert.equal(await setting(name), text, name)
    assert.match(await page.locator('pre[aria-label=payload]').innerText(), /"tenant": 7/)
    assert.match(await page.locator('.facts').first().innerText(), /after etl\/join, when any/)
    await page.go('jobs/bounded')
    await page.locator('section[aria-label=Settings]', { hasText: '2026-12-24..2026-12-26, 2027-01-06' }).waitFor()
    for (const [name, text] of Object.entries({ max_runs: '0 of 9 have run', jitter: 'below 1 min' })) assert.equal(await setting(name), text, name)
    assert.match(await setting('end_at'), /^2090-01-01/)
    await page.context().close()
  })
})

describe('the form', () => {
  let page
  before(async () => {
    page = await open('jobs')
  })
  after(async () => {
    assert.deepEqual(page.errors.filter((e) => !/\b40[49]\b/.test(e)), []) // refusals, and a job that was deleted
  })

  test('the next ticks are shown while one types, with what the clock does to them', async () => {
    await page.getByRole('link', { name: 'New stored job' }).click()
    await page.getByRole('heading', { name: 'New stored job' }).waitFor()
    const preview = page.locator('section[aria-label="Next ticks"]')
    const asked = []
    page.on('request', (r) => r.url().includes('/preview') && asked.push(r.url()))
    await page.getByLabel('Time zone').last().fill('Europe/Berlin')
    const schedule = page.locator('[name=schedule]')
    await until('ten keys that follow each other fast', async () => {
      await schedule.fill('')
      asked.length = 0
      const slowest = await schedule.evaluate(async (e) => {
        let [slowest, last] = [0, performance.now()]
        for (const key of '30 2 * * *') {
          e.value += key
          e.dispatchEvent(new Event('input', { bubbles: true }))
          await new Promise((done) => setTimeout(done, 30))
          slowest = Math.max(slowest, performance.now() - last)
          last = performance.now()
        }
        return slowest
      })
      return slowest < 250
    })
    await preview.getByText('at 02:30, every day, Europe/Berlin time').waitFor()
    assert.equal(asked.length, 1, `asked ${asked.length} times for ten keys`)
    assert.equal(await preview.locator('ol > li time').count(), 10)
    for (const text of await preview.locator('ol > li').allInnerTexts()) assert.match(text, /02:30:00|03:00:00|the clock is set/)
    // Within a year the clock goes forward once and back once, whenever the test runs.
    await preview.getByText('gap: the clock goes from 02:00 to 03:00; this tick stands in').waitFor()
    await preview.getByText('fold: 02:30 comes twice; this is the first, the other does not run').waitFor()
    assert.match(await preview.locator('h3').allInnerTexts().then((all) => all.sort().join(' ')), /from 0[23]:00 to 0[23]:00.* from 0[23]:00 to 0[23]:00/s)
    // Ticks months apart have another offset, and the page says where the clock was set.
    await page.locator('[name=schedule]').fill('0 12 1 */3 *')
    await preview.getByText('the clock is set: +01:00 → +02:00').first().waitFor()
    await preview.getByText('No tick is moved or comes twice.').first().waitFor()
    // H stands for what the name decides.
    await page.locator('[name=schedule]').fill('H H * * *')
    await preview.getByText('for a job named example').waitFor()
    const resolved = await preview.locator('code').innerText()
    await page.locator('[name=name]').fill('made/by-hand')
    await until('H of the name', async () => (await preview.locator('code').innerText()) !== resolved)
    // What is wrong is said at its field.
    await page.locator('[name=schedule]').fill('61 * * * *')
    await at(page, 'schedule', '61').waitFor()
    await page.locator('[name=schedule]').fill('@daily')
    await at(page, 'schedule', '').waitFor({ state: 'detached' })
    await page.locator('[name=except]').fill('2026-02-30')
    await at(page, 'except', 'except[0]').waitFor()
    await page.locator('[name=except]').fill('')
    await page.locator('[name=after]').fill('etl/join')
    await preview.getByText('it runs when a tick of etl/join has ended').waitFor()
  })

  test('what is wrong is said at its field, nothing is stored, and nothing that was typed is lost', async () => {
    await page.go('jobs') // else the form stays as it is
    await page.go('store')
    const typed = { name: 'made/by-hand', handler: 'report', schedule: '* * * * * *', payload: '{oops', timeout: '10', more: '{"ttl_ms": 1}' }
    await store(page, typed)
    await at(page, 'payload', 'is not JSON').waitFor()
    await at(page, 'timeout', '90s, 10m or 1h30m').waitFor()
    await store(page, { payload: '{"tenant": 9007199254740993}', timeout: '10m' })
    await at(page, 'more', 'ttl: 1ms is outside').waitFor() // the server's words
    await store(page, { more: '', after: 'nope', schedule: '' })
    await at(page, 'after', 'there is no job "nope"').waitFor()
    await page.getByRole('alert').filter({ hasText: 'Nothing is stored: see after.' }).waitFor()
    assert.equal(await page.evaluate(() => document.activeElement.name), 'after')
    for (const [name, value] of Object.entries({ name: 'made/by-hand', handler: 'report', payload: '{"tenant": 9007199254740993}', timeout: '10m', after: 'nope' })) assert.equal(await page.locator(`form.store [name=${name}]`).inputValue(), value, name)
    assert.equal(await stored('made/by-hand'), false)
    await page.locator('form.store [name=after]').fill('')
    await at(page, 'after', '').waitFor({ state: 'detached' })
  })

  test('a job is stored, runs, and is in the audit', async () => {
    await store(page, { schedule: '* * * * * *', retries: '2', overlap: 'queue' }, 'tenant 7 is new')
    await page.locator('.said', { hasText: 'made/by-hand is stored.' }).waitFor()
    await page.getByRole('heading', { name: 'made/by-hand' }).waitFor()
    await page.locator('tbody tr', { hasText: 'succeeded' }).first().waitFor()
    await audited(home, 'jobs put', 'made/by-hand', 'tenant 7 is new')
    const run = (await api('runs?job=made%2Fby-hand&outcome=succeeded'))[0]
    assert.match((await api('runs/' + run.run)).output, /\{"tenant":\s*9007199254740993\}/)
    await page.locator('pre[aria-label=payload]', { hasText: '9007199254740993' }).waitFor()
    const doc = await stored('made/by-hand')
    assert.match(doc, /"timeout_ms":600000/)
    assert.match(doc, /"overlap":"queue"/)
    assert.match(doc, /"max":2/)
  })

  test('a stored job is changed, and the rest of it stays', async () => {
    const before = JSON.parse(await stored('made/by-hand'))[0]
    await page.getByRole('link', { name: 'Edit' }).click()
    await page.getByRole('heading', { name: 'Change made/by-hand' }).waitFor()
    assert.equal(await page.locator('[name=timeout]').inputValue(), '10m')
    await store(page, { schedule: '30 2 * * *', time_zone: 'Europe/Berlin' })
    await page.locator('.facts', { hasText: '30 2 * * *' }).first().waitFor()
    const doc = await stored('made/by-hand')
    assert.match(doc, /9007199254740993/, 'a large number of the payload was rounded')
    const now = JSON.parse(doc)[0]
    assert.ok(now.version > before.version)
    assert.deepEqual({ ...now, version: 0 }, { ...before, version: 0, schedule: '30 2 * * *', time_zone: 'Europe/Berlin' })
    await audited(home, 'jobs put', 'made/by-hand')
  })

  test('who was slower is told what has changed meanwhile, and chooses', async () => {
    await page.go('store/made%2Fby-hand')
    await page.locator('form.store [name=schedule]').waitFor()
    await put('made/by-hand', { schedule: '30 2 * * *', time_zone: 'Europe/Berlin', timeout_ms: 5000 })
    await store(page, { schedule: '45 2 * * *' })
    const told = page.getByRole('alert').filter({ hasText: 'Somebody has changed the job meanwhile' })
    assert.match(await told.innerText(), /payload.*timeout_ms|timeout_ms.*payload/)
    assert.equal(JSON.parse(await stored('made/by-hand'))[0].schedule, '30 2 * * *', 'it was overwritten')
    assert.equal(await page.locator('[name=schedule]').inputValue(), '45 2 * * *')
    await told.getByRole('button', { name: 'Let mine replace it' }).click()
    await page.getByRole('button', { name: 'Store' }).click()
    await page.locator('.facts', { hasText: '45 2 * * *' }).first().waitFor()
    assert.equal(JSON.parse(await stored('made/by-hand'))[0].timeout_ms, 600000)

    await page.go('store/made%2Fby-hand')
    await page.locator('form.store [name=schedule]').waitFor()
    await put('made/by-hand', { schedule: '15 2 * * *' })
    await store(page, { schedule: '50 2 * * *' })
    await page.getByRole('button', { name: 'Take theirs' }).click()
    await until('theirs', async () => (await page.locator('[name=schedule]').inputValue()) === '15 2 * * *')

    await page.go('store')
    await store(page, { name: 'made/by-hand', handler: 'report', schedule: '@hourly' })
    await page.getByRole('alert').filter({ hasText: 'A job made/by-hand is stored already' }).waitFor()
    await page.getByRole('link', { name: 'Change that one' }).click()
    await page.getByRole('heading', { name: 'Change made/by-hand' }).waitFor()
    await page.go('store')
    await store(page, { name: 'beat', handler: 'report', schedule: '@hourly' })
    await page.getByRole('alert').filter({ hasText: 'a program has registered a job of that name' }).waitFor()
  })

  test('a stored job is deleted, and one that others delete meanwhile can be stored anew', async () => {
    await page.go('store/made%2Fby-hand')
    await page.locator('form.store [name=schedule]').waitFor()
    await fetch(`${home}/api/v1/jobs/made%2Fby-hand`, { method: 'DELETE' })
    await store(page, {})
    await page.getByRole('alert').filter({ hasText: 'The job has been deleted meanwhile.' }).getByRole('button', { name: 'Let mine be a new job' }).click()
    await page.getByRole('button', { name: 'Store' }).click()
    await page.getByRole('heading', { name: 'made/by-hand', exact: true }).waitFor()
    await act(page, page.getByRole('button', { name: 'Delete…' }), { reason: 'the tenant left' })
    await page.locator('.said', { hasText: 'made/by-hand is deleted.' }).waitFor()
    await page.getByRole('heading', { name: /^Jobs/ }).waitFor()
    assert.equal(await stored('made/by-hand'), false)
    await audited(home, 'jobs delete', 'made/by-hand', 'the tenant left')
  })
})

test('a viewer sees no form, and is refused by the API', async () => {
  const url = c.nodes[1].url
  const page = await open('jobs', { url })
  await page.getByLabel('Token').fill('viewer-token-1')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('link', { name: 'etl/load' }).waitFor()
  assert.equal(await page.getByRole('link', { name: 'New stored job' }).count(), 0)
  await page.go('jobs/etl%2Fload')
  await page.locator('section[aria-label=Settings]').waitFor()
  for (const role of ['link', 'button']) assert.equal(await page.getByRole(role, { name: /Edit|Delete/ }).count(), 0)
  for (const place of ['store', 'store/etl%2Fload']) {
    await page.go(place)
    await page.locator('.note', { hasText: 'Only operators store jobs.' }).waitFor()
    assert.equal(await page.locator('form').count(), 0)
  }
  const headers = { Authorization: 'Bearer viewer-token-1', 'Content-Type': 'application/json' }
  const before = await stored('etl/load')
  for (const [method, body] of [['PUT', '{"handler": "report", "schedule": "@hourly"}'], ['DELETE', undefined]]) {
    assert.equal((await fetch(`${url}/api/v1/jobs/etl%2Fload`, { method, headers, body })).status, 403, method)
  }
  assert.equal(await stored('etl/load'), before)
  await page.context().close()
})

describe('the graph', () => {
  test('jobs stand right of those that they follow, with state, last outcome and when', async () => {
    const page = await open('graph')
    const box = (name) => page.locator('.box', { has: page.locator(`b:text-is("${name}")`) })
    await box('etl/check').locator('.state.bad', { hasText: 'failed' }).waitFor()
    await box('etl/load').locator('.state.good', { hasText: 'succeeded' }).waitFor()
    await box('etl/join').locator('.state', { hasText: 'skipped' }).waitFor()
    const place = async (name) => box(name).boundingBox()
    const [load, check, join, alert, clean] = [await place('etl/load'), await place('etl/check'), await place('etl/join'), await place('etl/alert'), await place('etl/clean')]
    assert.ok(load.x === check.x && load.x + load.width < join.x && join.x + join.width < alert.x && alert.x === clean.x, JSON.stringify([load, check, join, alert, clean]))
    assert.equal(await page.locator('.graph svg .edge').count(), 5) // and that from parts to totals
    assert.deepEqual((await page.locator('.graph svg text').allTextContents()).sort(), ['all succeeded', 'any', 'failed', 'succeeded'])
    assert.equal(await box('beat').count(), 0, 'a job that follows none, and that none follows')
    // The list has the same.
    const row = page.locator('table tr', { has: page.locator('a:text-is("etl/alert")') }).filter({ hasText: 'failed' })
    assert.match(await row.innerText(), /etl\/alert\s+etl\/join\s+failed/)
    // It follows what happens.
    await fetch(`${home}/api/v1/jobs/etl%2Fload/pause`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"reason": "tested"}' })
    await box('etl/load').locator('.state', { hasText: 'paused' }).first().waitFor({ timeout: 20_000 })
    await fetch(`${home}/api/v1/jobs/etl%2Fload/resume`, { method: 'POST' })
    await page.locator('input[type=search]').fill('total')
    await box('etl/load').waitFor({ state: 'detached' })
    assert.equal(await page.locator('.box').count(), 2)
    assert.ok(page.url().includes('q=total'))
    await box('totals').click()
    await page.getByRole('heading', { name: 'totals' }).waitFor()
    await page.getByRole('link', { name: 'graph', exact: true }).click()
    await box('parts').waitFor()
    assert.deepEqual(page.errors, [])
    await page.context().close()
  })

  test('of hundreds of jobs those near what is searched for are drawn', async () => {
    await put('hub', { schedule: yearly })
    const names = Array.from({ length: 220 }, (_, i) => `leaf/${String(i).padStart(3, '0')}`)
    for (let i = 0; i < names.length; i += 20) await Promise.all(names.slice(i, i + 20).map((name) => put(name, { after: ['hub'] })))
    await put('twig', { after: ['leaf/219'] })
    await until('nodes have taken them', async () => (await api('graph')).length >= 229, 60_000)
    const page = await open('graph')
    await page.getByText('Not all are drawn.').waitFor()
    assert.equal(await page.locator('.box').count(), 150 + (await page.locator('.box', { hasText: 'and more' }).count()))
    await page.locator('input[type=search]').fill('twig')
    await page.locator('.box.on', { hasText: 'twig' }).waitFor()
    for (const name of ['leaf/219', 'hub']) await page.locator('.box', { hasText: name }).waitFor()
    await sound(page, 'graph')
    assert.deepEqual(page.errors, [])
    await page.context().close()
    const list = [...names, 'hub', 'twig']
    for (let i = 0; i < list.length; i += 20) await Promise.all(list.slice(i, i + 20).map((name) => fetch(`${home}/api/v1/jobs/${encodeURIComponent(name)}`, { method: 'DELETE' })))
  })
})

test('a backfill is shown with its runs, and is cancelled as one', async () => {
  await put('filled', { schedule: '* * * * *' })
  await shown('filled')
  const body = JSON.stringify({ from: '2026-01-01T00:00:00Z', to: '2026-01-05T00:00:00Z', parallel: 2 })
  await api('jobs/filled/backfill', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })
  const page = await open('jobs/filled')
  await page.locator('.note', { hasText: /going, \d+ of 5761 ticks ended/ }).waitFor()
  await page.locator('tbody td', { hasText: 'backfill' }).first().waitFor()
  await act(page, page.getByRole('button', { name: 'Cancel the backfill…' }), { reason: 'wrong range' })
  await page.locator('.note', { hasText: 'cancelled by ann: wrong range' }).waitFor()
  const action = (await api('audit?limit=20')).find((a) => a.target === 'filled' && /backfill/.test(a.action) && a.reason === 'wrong range')
  assert.ok(action, 'it is not in the audit')
  assert.deepEqual(page.errors, [])
  await page.context().close()
})
