// Stored jobs in a real browser: their pages, backfills, who may store, and what runs say of themselves.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { act, looks, sound } from './page.mjs'
import { storedWorld } from './storedworld.mjs'
import { stopAll, until } from './world.mjs'

let world, c, home, api, put, shown, stored, open

before(async () => {
  world = await storedWorld()
  ;({ c, home, api, put, shown, stored, open } = world)
})
after(async () => {
  await (world ? world.end() : stopAll())
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
    for (const [name, text] of Object.entries({ handler: 'report', managed_by: 'tenants', retry: '2, first after 1s, on another node', try_timeout: '5s', stall_after: '1m, then cancel' })) assert.equal(await setting(name), text, name)
    assert.match(await page.locator('pre[aria-label=payload]').innerText(), /"tenant": 7/)
    assert.match(await page.locator('.facts').first().innerText(), /after etl\/join, when any/)
    await page.go('jobs/bounded')
    await page.locator('section[aria-label=Settings]', { hasText: '2026-12-24..2026-12-26, 2027-01-06' }).waitFor()
    for (const [name, text] of Object.entries({ max_runs: '0 of 9 have run', jitter: 'below 1m' })) assert.equal(await setting(name), text, name)
    assert.match(await setting('end_at'), /^2090-01-01/)
    await page.context().close()
  })

  test('a node that has refused a change of its configuration is shown with the reason', async () => {
    const page = await open('jobs')
    await page.route('**/api/v1/nodes', async (route) => {
      const response = await route.fetch()
      const [first, ...rest] = await response.json()
      await route.fulfill({ response, json: [{ ...first, config_refused: { at: new Date().toISOString(), text: 'jobs[2].schedule: 61 is too large' } }, ...rest] })
    })
    await page.go('nodes')
    await page.locator('td', { hasText: /has refused a change of its configuration .*: jobs\[2\]\.schedule: 61 is too large/ }).waitFor()
    assert.equal(await page.getByText('has refused').count(), 1)
    await page.context().close()
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
