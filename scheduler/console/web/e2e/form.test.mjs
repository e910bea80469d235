// The form of a stored job in a real browser: the preview of ticks, faults, conflicts, and what is stored.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { act, audited } from './page.mjs'
import { storedWorld, yearly } from './storedworld.mjs'
import { stopAll, until } from './world.mjs'

let world, home, api, put, stored, open, page

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
  world = await storedWorld()
  ;({ home, api, put, stored, open } = world)
  page = await open('jobs')
})
after(async () => {
  await (world ? world.end() : stopAll())
})
after(() => {
  assert.deepEqual(page?.errors.filter((e) => !/\b4(0[049]|22)\b/.test(e)), []) // refusals, and a job that was deleted
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
  const typed = { name: 'made/by-hand', handler: 'report', schedule: '* * * * * *', payload: '{oops', timeout: '10', more: '{"ttl_ms": 15000, "jitter": "90"}' }
  await store(page, typed)
  await at(page, 'payload', 'is not JSON').waitFor()
  await store(page, { payload: '{"tenant": 9007199254740993}' })
  await at(page, 'timeout', '10 has no unit; did you mean 10s').waitFor() // the server's words, of all settings at once
  await at(page, 'more', 'ttl_ms: unknown key; a duration has its unit: write ttl: 15s; jitter: 90 has no unit').waitFor()
  await store(page, { timeout: '10m', more: '{"ttl": "1ms"}' })
  await at(page, 'more', 'ttl: 1ms is outside').waitFor()
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
  assert.match(doc, /"timeout":"10m"/)
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
  await put('made/by-hand', { schedule: '30 2 * * *', time_zone: 'Europe/Berlin', timeout: '5s' })
  await store(page, { schedule: '45 2 * * *' })
  const told = page.getByRole('alert').filter({ hasText: 'Somebody has changed the job meanwhile' })
  assert.match(await told.innerText(), /payload.*timeout|timeout.*payload/)
  assert.equal(JSON.parse(await stored('made/by-hand'))[0].schedule, '30 2 * * *', 'it was overwritten')
  assert.equal(await page.locator('[name=schedule]').inputValue(), '45 2 * * *')
  await told.getByRole('button', { name: 'Let mine replace it' }).click()
  await page.getByRole('button', { name: 'Store' }).click()
  await page.locator('.facts', { hasText: '45 2 * * *' }).first().waitFor()
  assert.equal(JSON.parse(await stored('made/by-hand'))[0].timeout, '10m')

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

test('faults of a schedule are cleared when the next preview fails', async () => {
  await page.go('jobs')
  await page.go('store')
  await page.locator('[name=schedule]').fill('61 * * * *')
  await at(page, 'schedule', '61').waitFor()
  await page.route('**/api/v1/preview?*', (route) => route.fulfill({ status: 404, json: { detail: 'no preview here' } }))
  await page.locator('[name=schedule]').fill('@daily')
  await page.locator('.note', { hasText: 'no preview here' }).waitFor()
  await at(page, 'schedule', '').waitFor({ state: 'detached' })
  await page.unroute('**/api/v1/preview?*')
})

test('hundreds of days are left out of the preview, which says so, and stay in the job', async () => {
  const days = Array.from({ length: 500 }, (_, i) => new Date(Date.UTC(2027, 0, 1 + 2 * i)).toISOString().slice(0, 10))
  const asked = page.waitForRequest((r) => r.url().includes('schedule=%40weekly'))
  await page.locator('[name=except]').fill(days.join(' '))
  await page.locator('[name=schedule]').fill('@weekly')
  const { length } = (await asked).url()
  assert.ok(length < 8000, `a URL of ${length} characters`)
  await page.getByText('too many for the preview: it leaves them out').waitFor()
  assert.equal(await page.locator('section[aria-label="Next ticks"] ol > li time').count(), 10)
  await store(page, { name: 'made/bounded', handler: 'report' })
  await page.getByRole('heading', { name: 'made/bounded' }).waitFor()
  assert.deepEqual(JSON.parse(await stored('made/bounded'))[0].except, days)
})

test('a job that is stored is no failure, whatever the API answers afterwards', async () => {
  await page.go('store')
  const reads = /\/api\/v1\/jobs(\?|\/made%2Funsure)/
  await page.route(reads, (route) => (route.request().method() === 'GET' ? route.fulfill({ status: 404, json: { detail: 'not now' } }) : route.continue()))
  await store(page, { name: 'made/unsure', handler: 'report', schedule: yearly })
  await page.locator('.said', { hasText: 'made/unsure is stored.' }).waitFor()
  await page.waitForURL(/#\/jobs\/made%2Funsure$/)
  assert.equal(await page.getByRole('alert').count(), 0)
  await page.unroute(reads)
})

test('who leaves the form while a job is stored stays where they have gone', async () => {
  await page.go('store')
  let asked = 0
  const reads = /\/api\/v1\/jobs(\?|\/made%2Fleft)/
  await page.route(reads, (route) => {
    if (route.request().method() !== 'GET') return route.continue()
    asked++
    return page.url().includes('#/locks') ? route.continue() : route.fulfill({ status: 404, json: { detail: 'not yet' } })
  })
  await store(page, { name: 'made/left', handler: 'report', schedule: yearly })
  await until('the form waits for the job', () => asked > 0)
  const known = page.waitForResponse((r) => reads.test(r.url()) && r.ok())
  await page.go('locks')
  await known
  await page.waitForTimeout(500)
  assert.match(page.url(), /#\/locks$/)
  await page.unroute(reads)
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
