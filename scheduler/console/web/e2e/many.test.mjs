// Ten thousand jobs on three nodes: the list scrolls and is searched without a stall.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { chromium } from 'playwright-core'
import { build, cluster, stopAll, until } from './world.mjs'

const count = 10_000
const stall = 100 // ms that a key may take

let c
let browser
before(async () => {
  build()
  const jobs = 'jobs:\n' + Array.from({ length: count }, (_, i) => `  - {name: job-${String(i).padStart(5, '0')}, schedule: "H H * * *", exec: {command: ["true"]}}\n`).join('')
  c = await cluster({ jobs, nodes: [{ name: 'a1' }, { name: 'a2' }, { name: 'a3' }] })
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] })
})
after(async () => {
  await browser?.close()
  await stopAll()
})

test('10,000 jobs are listed, scrolled and searched without a stall', async () => {
  const home = c.nodes[0].url
  await until('all jobs are there', async () => (await (await fetch(home + '/api/v1/overview')).json()).jobs === count, 60_000)
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage()
  await page.goto(home + '/#/jobs')
  await page.getByRole('link', { name: 'job-00000' }).waitFor()
  assert.ok((await page.locator('.vpad .vrow').count()) < 60, 'rows exist that nobody sees')

  // Scrolled to the 2,000th row.
  await until('the 2,000th row', async () => {
    await page.locator('.vbody').evaluate((e) => (e.scrollTop = e.scrollHeight))
    return (await page.locator('.vpad').evaluate((e) => e.clientHeight)) > 2000 * 36
  })
  assert.ok((await page.locator('.vpad .vrow').count()) < 60, 'rows exist that nobody sees')

  // How long the page was busy with a key, and how long until the rows of the search were there.
  await page.evaluate(() => {
    window.busy = []
    new PerformanceObserver((list) => list.getEntries().forEach((e) => window.busy.push(['task', Math.round(e.duration)]))).observe({ type: 'longtask' })
    new PerformanceObserver((list) => list.getEntries().forEach((e) => e.name.startsWith('key') && window.busy.push([e.name, e.duration]))).observe({ type: 'event', durationThreshold: 16 })
  })
  const search = page.locator('input[type=search]')
  const took = []
  let text = ''
  for (const key of '09876') {
    text += key
    const begun = Date.now()
    await search.pressSequentially(key)
    const names = (n) => page.locator('.vpad .name').allInnerTexts().then((all) => all.every((name) => name.includes(text)) && (!n || all.length === n))
    await until('rows of ' + text, () => names(text.length === 5 ? 1 : 0))
    took.push(Date.now() - begun)
  }
  const busy = await page.evaluate(() => window.busy)
  console.log('rows after each key, ms:', took.join(' '), 'busy:', JSON.stringify(busy))
  const worst = Math.max(0, ...busy.map(([, ms]) => ms))
  assert.ok(worst <= stall, `a key took ${worst} ms: ${JSON.stringify(busy)}`)
})
