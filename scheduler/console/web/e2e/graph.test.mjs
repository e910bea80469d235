// The graph of jobs in a real browser.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sound } from './page.mjs'
import { storedWorld, yearly } from './storedworld.mjs'
import { stopAll, until } from './world.mjs'

let world, home, api, put, open

before(async () => {
  world = await storedWorld()
  ;({ home, api, put, open } = world)
})
after(async () => {
  await (world ? world.end() : stopAll())
})

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

/** A page of the graph that shows the jobs of a list in place of those of the API. */
async function openWith(list) {
  const page = await open('jobs')
  await page.route('**/api/v1/graph', (route) => route.fulfill({ json: list.map(([name, ...after]) => ({ name, schedule: after.length ? '' : yearly, time_zone: 'UTC', after, when: after.length ? 'succeeded' : '', followers: [], last: null, last_outcome: '', paused: false, open: '' })) }))
  await page.go('graph')
  return page
}

test('jobs that wait for each other in a circle are drawn, and the page says so', async () => {
  const page = await openWith([['a', 'b'], ['b', 'a'], ['c', 'b'], ['d', 'a', 'e'], ['e'], ['self', 'self'], ['x', 'z'], ['y', 'x'], ['z', 'y', 'e']])
  const box = (name) => page.locator('.box', { has: page.locator(`b:text-is("${name}")`) })
  await box('self').waitFor()
  const place = async (name) => (await box(name).boundingBox()).x
  assert.ok((await place('a')) !== (await place('b')))
  assert.ok((await place('b')) < (await place('c')) && (await place('e')) < (await place('d')) && (await place('a')) < (await place('d')))
  const said = page.locator('.note', { hasText: 'wait for each other in a circle' })
  assert.deepEqual((await said.locator('a').allInnerTexts()).sort(), ['a', 'b', 'self', 'x', 'y', 'z'])
  await sound(page, 'graph')
  assert.deepEqual(page.errors, [])
  await page.context().close()
})

test('a node that answers others of these requests is asked again, and counts as reached', async () => {
  const page = await open('jobs')
  let refused = 0
  await page.route('**/api/v1/graph', (route) => (refused++ ? route.continue() : route.fulfill({ status: 503, json: { code: 'too_many', detail: 'two such requests are being answered here' } })))
  await page.go('graph')
  await page.locator('.note', { hasText: 'two such requests' }).waitFor()
  assert.equal(await page.locator('.banner').count(), 0)
  await page.locator('.box', { hasText: 'etl/join' }).waitFor()
  await page.context().close()
})
