// The console in a real browser, before three real nodes and a real Redis.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { act, audited as auditedAt, axe, launch, looks, open as openPage, sound } from './page.mjs'
import { build, cluster, jobs, pause, proxy, end as stopProcess, stopAll, until } from './world.mjs'

const secrets = `, operator_token: operator-token-1, viewer_token: viewer-token-1`

let c // the cluster
let browser
let home // the first node's address

const open = (place, { url = home, ...o } = {}) => openPage(browser, url, place, o)

const api = async (path, init) => (await fetch(`${home}/api/v1/${path}`, init)).json()

const audited = (action, target, reason) => auditedAt(home, action, target, reason)

before(async () => {
  build()
  const green = jobs.replace('@every 3s', '@every 5s').replace('name: long', 'name: longer')
  c = await cluster({
    jobs,
    nodes: [
      { name: 'a1', generation: 'blue' },
      { name: 'a2', generation: 'blue', http: ', base_path: /ops' },
      { name: 'b1', generation: 'green', jobs: green, http: secrets },
    ],
  })
  home = c.nodes[0].url
  browser = await launch()
})

after(async () => {
  await browser?.close()
  await stopAll()
})

describe('pages', () => {
  const places = {
    overview: 'running', jobs: 'nightly/backup', 'jobs/flaky': 'Durations', 'jobs/parts': '3 shards', 'jobs/nightly%2Fbackup': 'Europe/Berlin', 'jobs/nowhere': 'No node can run it',
    runs: 'succeeded', timeline: 'beat', nodes: 'a1', generations: 'green', locks: 'long', audit: 'jobs run', nowhere: 'There is no page', 'jobs/nope': 'escapement jobs list', 'runs/nope': 'nope',
  }
  let run
  before(async () => {
    await api('jobs/long/runs', { method: 'POST' })
    run = await until('a run of flaky failed', async () => (await api('runs?job=flaky&outcome=failed'))[0])
  })
  for (const [look, options] of Object.entries(looks))
    test(`each page, ${look}: its content, no errors, no requests elsewhere, and axe finds nothing`, async () => {
      const page = await open('overview', { options })
      for (const [place, has] of Object.entries({ ...places, [`runs/${run.run}`]: 'the disk is full' })) {
        await page.go(place)
        await page.locator('main', { hasText: has }).waitFor()
        await sound(page, place)
      }
      page.errors = page.errors.filter((e) => !/404.*nope/.test(e))
      assert.deepEqual(page.errors, [])
      assert.deepEqual(page.outside, [])
      await page.context().close()
    })
})

describe('live', () => {
  test('a tick is shown within a second of its instant', async () => {
    const page = await open('jobs/beat')
    await page.locator('tbody tr').first().waitFor()
    const late = await page.evaluate(async () => {
      const seen = new Set([...document.querySelectorAll('tbody time')].map((t) => t.dateTime))
      const all = []
      for (const end = Date.now() + 15_000; Date.now() < end && all.length < 8; await new Promise(requestAnimationFrame))
        for (const t of document.querySelectorAll('tbody time'))
          if (!seen.has(t.dateTime)) {
            seen.add(t.dateTime)
            all.push(Date.now() - Date.parse(t.dateTime))
          }
      return all
    })
    console.log('shown after the tick, ms:', late.join(' '))
    assert.ok(late.length >= 8, `only ${late.length} ticks in 15 s`)
    assert.ok(late.filter((ms) => ms <= 1000).length >= 7, `shown ${late} ms after the ticks`)
    assert.deepEqual(page.errors, [])
    await page.context().close()
  })

  test('two tabs share one stream, and the second goes on when the first is closed', async () => {
    const context = await browser.newContext()
    let streams = 0
    context.on('request', (r) => r.url().endsWith('/events') && streams++)
    const [one, two] = [await open('jobs/beat', { context }), await open('overview', { context })]
    for (const page of [one, two]) await page.locator('.live.live', { hasText: 'live' }).waitFor()
    await pause(1500)
    assert.equal(streams, 1)
    await one.close()
    await until('the second tab listens', () => streams === 2)
    await context.close()
  })

  test('pause holds the page still, and go on shows what has come', async () => {
    const page = await open('jobs/beat')
    const asked = new Set() // requests without an answer
    page.on('request', (r) => r.url().endsWith('/events') || asked.add(r))
    for (const end of ['requestfinished', 'requestfailed']) page.on(end, (r) => asked.delete(r))
    const newest = () => page.locator('tbody time').first().getAttribute('datetime')
    await page.locator('.live.live', { hasText: 'live' }).waitFor()
    await page.locator('button.live').click()
    await page.locator('button.live', { hasText: 'paused' }).waitFor()
    await until('answers to what was asked before', () => asked.size === 0, 30_000)
    await pause(200) // the last answer is drawn
    const still = await newest()
    await pause(2500)
    assert.equal(await newest(), still)
    await page.locator('button.live').click()
    await until('newer ticks', async () => (await newest()) > still, 5000)
    await page.context().close()
  })

  test('without the stream the page polls', async () => {
    const context = await browser.newContext()
    await context.route('**/events', (r) => r.abort())
    const page = await open('jobs/beat', { context })
    const newest = () => page.locator('tbody time').first().getAttribute('datetime')
    await page.locator('tbody time').first().waitFor()
    const then = await newest()
    await page.locator('button.live', { hasText: 'polling' }).waitFor()
    await until('newer ticks', async () => (await newest()) > then, 30_000)
    await context.close()
  })

  test('while the node is down the page says so, and that it polls', async () => {
    const node = c.nodes[1]
    const page = await open('jobs/beat', { url: node.url })
    await page.locator('.live.live', { hasText: 'live' }).waitFor()
    await stopProcess(node.process)
    await page.locator('button.live', { hasText: 'polling' }).waitFor({ timeout: 3000 })
    await page.locator('.banner', { hasText: 'The node does not answer.' }).waitFor()
    assert.equal(await page.locator('button.live').innerText(), 'polling')
    await c.restart(node)
    await page.locator('.live.live', { hasText: 'live' }).waitFor({ timeout: 20_000 })
    assert.equal(await page.locator('.banner').count(), 0)
    await page.context().close()
  })

  test('a console without a name has that of the namespace', async () => {
    const context = await browser.newContext()
    await context.route(home + '/', async (r) => {
      const got = await r.fetch()
      await r.fulfill({ response: got, body: (await got.text()).replace(/data-name="[^"]*"/, 'data-name=""') })
    })
    const page = await open('overview', { context })
    const { name } = await api('namespace')
    await until('the name of the namespace', async () => (await page.locator('.brand').innerText()).trim() === name)
    await context.close()
  })

  test('the next ticks are those that have not begun', async () => {
    const page = await open('jobs/beat')
    await page.locator('.ticks li').nth(19).waitFor()
    const begun = await page.evaluate(async () => {
      const wrong = []
      for (const end = Date.now() + 8000; Date.now() < end; await new Promise(requestAnimationFrame)) {
        const rows = new Set([...document.querySelectorAll('tbody time')].map((t) => t.dateTime))
        const next = [...document.querySelectorAll('.ticks time')].map((t) => t.dateTime)
        if (next.length !== 20 || next.some((t) => rows.has(t))) wrong.push(next[0] + ' of ' + next.length)
      }
      return wrong
    })
    assert.deepEqual(begun, [])
    await page.context().close()
  })

  test('the timeline opens at a span that fits what there is', async () => {
    const page = await open('timeline')
    await page.getByRole('button', { name: '1h', pressed: true }).waitFor()
    await page.getByRole('button', { name: '24h' }).click()
    await page.reload()
    await page.getByRole('button', { name: '24h', pressed: true }).waitFor()
    await page.context().close()
  })

  test('the icon is red while a job fails', async () => {
    const page = await open('audit')
    const icon = () => page.locator('link[rel=icon]').getAttribute('href')
    await until('red', async () => (await icon()).includes('bad'))
    await page.context().close()
  })
})

describe('ticks on an axis', () => {
  /** The marks of a job's ticks whose title has a text: class, height of the bar, and whether it has a gap. */
  const marks = (page, of, text) =>
    page.locator(of + ' g.mark').filter({ hasText: text }).evaluateAll((all) =>
      all.map((g) => ({ tone: g.classList[0], height: Math.max(...[...g.querySelectorAll('rect:not(.gap)')].map((r) => Number(r.getAttribute('height')))), gaps: g.querySelectorAll('.gap').length, x: Number(g.querySelector('rect:not(.gap)').getAttribute('x')), width: Number(g.querySelector('rect:not(.gap)').getAttribute('width')) })),
    )

  test('a tick that was skipped while a run went on is a low mark, and the run a full one', async () => {
    await until('a tick was skipped and two runs succeeded', async () => {
      const all = await api('runs?job=slow')
      return all.some((r) => r.outcome === 'skipped') && all.filter((r) => r.outcome === 'succeeded').length > 1
    }, 30_000)
    for (const [place, of] of [['jobs/slow', 'section[aria-label=Ticks]'], ['timeline?span=10m&q=slow', '.line:has(a:text-is("slow"))']]) {
      const page = await open(place)
      await page.locator(of + ' g.mark').first().waitFor()
      const [skipped, ran] = await until('both are drawn', async () => {
        const both = [await marks(page, of, 'skipped'), await marks(page, of, 'succeeded')]
        return both.every((m) => m.length > 0) && both
      })
      assert.deepEqual([...new Set(skipped.map((m) => `${m.tone} ${m.height}`))], ['idle 5'], place)
      assert.ok(ran.every((m) => m.tone === 'good' && m.height > 15), `${place}: ${JSON.stringify(ran)}`)
      await page.context().close()
    }
  })

  test('a tick that went wrong and succeeded with its second attempt is an amber mark and a green one', async () => {
    const { run } = await api('jobs/again/runs', { method: 'POST' })
    await until('it failed', async () => (await api('runs/' + run)).outcome === 'failed')
    const second = await api(`runs/${run}/rerun`, { method: 'POST' })
    await until('it succeeded', async () => (await api('runs/' + second.run)).outcome === 'succeeded')
    for (const [place, of] of [['jobs/again', 'section[aria-label=Ticks]'], ['timeline?span=10m&q=again', '.line:has(a:text-is("again"))']]) {
      const page = await open(place)
      if (place.startsWith('timeline')) for (let i = 0; i < 5; i++) await page.getByRole('button', { name: 'zoom in' }).click()
      await page.locator(of + ' g.mark').nth(1).waitFor()
      const [first, then] = [await marks(page, of, ': failed'), await marks(page, of, 'attempt 2 succeeded')]
      assert.deepEqual(first.map((m) => [m.tone, m.gaps]), [['warn', 1]], place)
      assert.deepEqual(then.map((m) => [m.tone, m.gaps]), [['good', 0]], place)
      assert.ok(then[0].x >= first[0].x + first[0].width - 1, `${place}: the second attempt is drawn over the first: ${JSON.stringify([first, then])}`)
      // From afar they are one mark, which shows how the tick ended.
      if (place.startsWith('timeline')) {
        await page.getByRole('button', { name: '7d' }).click()
        await until('one green mark', async () => JSON.stringify((await marks(page, of, '')).map((m) => m.tone)) === '["good"]')
      }
      await page.context().close()
    }
    const page = await open('jobs')
    const strip = page.locator('.vrow', { hasText: 'again' }).locator('.strip g')
    await until('two bars', async () => JSON.stringify(await strip.evaluateAll((all) => all.map((g) => g.getAttribute('class')))) === '["warn","good"]')
    await page.context().close()
  })
})

describe('actions', () => {
  let page
  before(async () => {
    page = await open('jobs')
  })
  after(async () => {
    assert.deepEqual(page.errors, [])
  })
  const button = (name) => page.getByRole('button', { name, exact: true })

  test('a reason is asked for, and Escape does nothing', async () => {
    await page.go('jobs/totals')
    await button('Pause…').click()
    await page.locator('dialog[open] button.strong').click()
    assert.equal(await page.locator('dialog[open]').count(), 1, 'it went without a reason')
    await page.keyboard.press('Escape')
    await page.locator('dialog[open]').waitFor({ state: 'detached' })
    assert.equal((await api('jobs/totals')).paused, false)
  })

  test('pause and resume a job', async () => {
    await page.go('jobs/flaky')
    await act(page, button('Pause…'), { reason: 'Größe wird geprüft', fill: { until: '2099-01-02T03:04:05' } })
    await page.locator('.note', { hasText: 'Paused by ann: Größe wird geprüft' }).waitFor()
    assert.match((await api('jobs/flaky')).pause.until, /^2099-01-0/)
    await audited('jobs pause', 'flaky', 'Größe wird geprüft')
    await act(page, button('Resume…'))
    await button('Pause…').waitFor()
    await audited('jobs resume', 'flaky')
  })

  test('run a job now with a payload, and look at the run', async () => {
    await page.go('jobs/nightly%2Fbackup')
    await button('Run now…').click()
    await page.locator('dialog [name=payload]').fill('{oops')
    await page.locator('dialog [name=reason]').fill('x')
    await page.locator('dialog button.strong').click()
    await page.locator('dialog [role=alert]', { hasText: 'not JSON' }).waitFor()
    await page.keyboard.press('Escape')
    await act(page, button('Run now…'), { fill: { payload: '{"full": true}' } })
    await page.locator('.said a').click()
    assert.ok(page.url().includes('#/runs/'), page.url())
    await page.locator('.output', { hasText: 'payload: {"full":true}' }).waitFor()
    await audited('jobs run', 'nightly/backup')
    await act(page, button('Run again…'))
    await page.getByRole('region', { name: 'Attempts' }).first().waitFor()
  })

  test('rewind a job', async () => {
    await page.go('jobs/beat')
    const to = new Date(Date.now() - 5000)
    const local = new Date(to - to.getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
    await act(page, button('Rewind…'), { fill: { to: local } })
    await page.locator('.said', { hasText: 'begins again with the tick of' }).waitFor()
    await audited('jobs rewind', 'beat')
  })

  test('cancel a run', async () => {
    const { run } = await api('jobs/long/runs', { method: 'POST' })
    const going = await until('it runs', async () => (await api('runs?job=long&outcome=running')).find((r) => r.started))
    await page.go('runs/' + going.run)
    await act(page, button('Cancel…'))
    await page.locator('.lead', { hasText: 'cancelled' }).waitFor()
    await audited('runs cancel', going.run)
    await fetch(`${home}/api/v1/runs/${run}/cancel`, { method: 'POST' })
  })

  test('pause, resume and run many jobs', async () => {
    await page.go('jobs')
    await page.locator('input[type=search]').fill('o')
    await until('what was found', async () => !(await page.locator('.vbody').innerText()).includes('beat'))
    await button('choose all found').click()
    const names = (await api('jobs?q=o')).map((j) => j.name)
    await page.locator('.bulk', { hasText: `${names.length} chosen` }).waitFor()
    await act(page, button('Pause…'))
    await until('all are paused', async () => (await api('jobs?q=o')).every((j) => j.paused))
    await button('choose all found').click()
    await act(page, button('Resume…'))
    await until('none is paused', async () => (await api('jobs?q=o')).every((j) => !j.paused))
    assert.ok(page.url().includes('q=o'), 'the search is not in the address')
    await page.getByLabel('choose totals').check()
    await act(page, button('Run…'))
    await until('it ran', async () => (await api('runs?job=totals')).some((r) => r.trigger === 'manual'))
  })

  test('drain and resume a node', async () => {
    await page.go('nodes')
    await act(page, page.locator('tr', { hasText: 'a2' }).getByRole('button', { name: 'Drain…' }))
    await page.locator('tr', { hasText: 'drained by ann: tested' }).waitFor()
    await audited('nodes drain', 'a2')
    await act(page, page.locator('tr', { hasText: 'a2' }).getByRole('button', { name: 'Resume…' }))
    await page.locator('tr', { hasText: 'drained by' }).waitFor({ state: 'detached' })
    await audited('nodes resume', 'a2')
  })

  test('release a lock', async () => {
    const holder = c.begin('lock', 'deploy:web', '--ttl', '10s', '--', 'sleep', '1000')
    await page.go('locks')
    await act(page, page.locator('tr', { hasText: 'deploy:web' }).getByRole('button', { name: 'Release…' }))
    await page.locator('tr', { hasText: 'deploy:web' }).waitFor({ state: 'detached' })
    await audited('locks release', 'deploy:web')
    assert.equal(await holder.gone, 75)
  })

  test('promote a generation, and back', async () => {
    await page.go('generations')
    const card = (name) => page.locator('.card', { has: page.getByRole('heading', { name, exact: true }) })
    await card('green').getByText('longer').waitFor()
    await act(page, card('green').getByRole('button', { name: 'Promote…' }))
    await card('green').locator('.state', { hasText: 'active' }).waitFor()
    await audited('generations promote', 'green')
    await act(page, card('blue').getByRole('button', { name: 'Promote…' }))
    await card('blue').locator('.state', { hasText: 'active' }).waitFor()
  })

  test('what the API refuses is said in the dialog', async () => {
    await page.go('jobs/beat')
    await button('Rewind…').click()
    await page.locator('dialog [name=to]').fill('2001-01-01T00:00:00')
    await page.locator('dialog [name=reason]').fill('x')
    await page.locator('dialog button.strong').click()
    await page.locator('dialog [role=alert]').waitFor()
    await page.keyboard.press('Escape')
    page.errors = page.errors.filter((e) => !e.includes('409'))
  })
})

test('a viewer signs in, sees no actions, and is refused by the API', async () => {
  const url = c.nodes[2].url
  const page = await open('jobs/beat', { url })
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await page.getByLabel('Token').fill('wrong-token')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('alert').filter({ hasText: 'This token is not known here.' }).waitFor()
  await page.getByLabel('Token').fill('viewer-token-1')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.locator('tbody tr').first().waitFor()
  await page.locator('footer', { hasText: 'viewer' }).waitFor()
  assert.doesNotMatch(await page.locator('footer').innerText(), /viewer, viewer/)
  for (const place of ['jobs/beat', 'jobs', 'nodes', 'generations', 'locks']) {
    await page.go(place)
    await pause(300)
    assert.equal(await page.getByRole('button', { name: /…$/ }).count(), 0, `${place} has actions`)
  }
  await page.locator('.live.live', { hasText: 'live' }).waitFor()
  for (const path of ['jobs/beat/pause', 'jobs/beat/runs', 'nodes/a1/drain', 'generations/green/promote']) {
    const r = await fetch(`${url}/api/v1/${path}`, { method: 'POST', headers: { Authorization: 'Bearer viewer-token-1' } })
    assert.equal(r.status, 403, path)
  }
  assert.equal((await fetch(`${url}/api/v1/jobs`)).status, 401)
  await page.context().close()
})

test('a token that is replaced leads to the sign-in at once, and one can sign out', async () => {
  const [node] = c.nodes.slice(2)
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  const signIn = async (page, token) => {
    await page.getByLabel('Token').fill(token)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.locator('.live.live', { hasText: 'live' }).waitFor()
  }
  const page = await open('jobs/beat', { context, url: node.url })
  assert.equal(await page.locator('.live').count(), 0, 'a page that wants a sign-in says how live it is')
  await signIn(page, 'operator-token-1')
  await page.reload()
  await page.locator('.live.live', { hasText: 'live' }).waitFor()
  const second = await open('jobs/slow', { context, url: node.url }) // it gets its events from the first
  await signIn(second, 'viewer-token-1')
  const { http } = node
  await c.restart(node, { http: http.replace('operator-token-1', 'operator-token-2') })
  try {
    await page.getByRole('alert').filter({ hasText: 'The token is not accepted any more.' }).waitFor({ timeout: 5000 })
    assert.equal(await page.locator('tbody tr').count(), 0, 'rows are shown beside the sign-in')
    await second.locator('.live.live', { hasText: 'live' }).waitFor() // its token is as it was
    assert.equal(await second.getByRole('heading', { name: 'Sign in' }).count(), 0)
    await signIn(page, 'operator-token-2')
    await page.locator('tbody tr').first().waitFor()
    await page.getByRole('button', { name: 'sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    assert.equal(await page.getByRole('alert').count(), 0)
    await page.reload()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await page.evaluate(axe)
    const found = await page.evaluate(() => axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }))
    assert.deepEqual(found.violations.map((v) => v.id), [])
  } finally {
    await context.close()
    await c.restart(node, { http })
  }
})

for (const [kind, node, strip] of [['strips the path', 0, true], ['leaves the path', 1, false], ['strips the path that the node knows', 1, true]])
  test(`below a base path, behind a proxy that ${kind}`, async () => {
    const url = await proxy(c.nodes[node].url, '/ops', strip)
    const page = await open('overview', { url })
    await page.locator('.counts b').first().waitFor()
    await page.locator('.live.live', { hasText: 'live' }).waitFor()
    await page.getByRole('link', { name: 'Jobs', exact: true }).click()
    await page.getByRole('heading', { name: /^Jobs/ }).waitFor()
    await page.getByRole('link', { name: 'nightly/backup' }).click()
    await page.getByRole('heading', { name: 'nightly/backup' }).waitFor()
    await page.reload()
    await act(page, page.getByRole('button', { name: 'Run now…' }))
    await page.locator('tbody tr', { hasText: 'manual' }).first().waitFor()
    assert.deepEqual(page.errors, [])
    assert.deepEqual(page.outside, [])
    await page.context().close()
  })

test('times are in the zone that the page names: of its job, or of the browser where there are many', async () => {
  const page = await open('overview', { options: { timezoneId: 'Asia/Tokyo' } })
  const run = await until('a run of flaky ended', async () => (await api('runs?job=flaky&outcome=succeeded'))[0])
  const clockIn = (zone, at) => new Intl.DateTimeFormat('en-GB', { timeZone: zone, hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' }).format(new Date(at))
  const places = { overview: 'Asia/Tokyo', runs: 'Asia/Tokyo', audit: 'Asia/Tokyo', 'jobs/flaky': 'UTC', [`runs/${run.run}`]: 'UTC', 'jobs/hourly-report': 'America/New_York' }
  for (const choice of ['job', 'UTC', 'browser']) {
    await page.locator('.tools select').selectOption(choice)
    for (const [place, ofJob] of Object.entries(places)) {
      const zone = { job: ofJob, UTC: 'UTC', browser: 'Asia/Tokyo' }[choice]
      await page.go(place)
      await page.locator('.tools .zone', { hasText: zone }).waitFor()
      assert.match(await page.locator('footer').innerText(), new RegExp(`Redis' time \\S+ ${zone}`), place)
      const times = () => page.locator('main time[datetime]').evaluateAll((all) => all.filter((t) => !t.closest('.ticks')).map((t) => [t.dateTime, t.textContent, t.title]).filter(([, text]) => /\d:\d\d:\d\d$/.test(text)))
      const shown = await until(`times on ${place}`, async () => (await times()).length > 0 && times())
      for (const [at, text] of shown) assert.ok(text.endsWith(clockIn(zone, at)), `${place} in ${choice}: ${at} is shown as ${text}, not in ${zone}`)
    }
    await page.go('timeline?span=10m')
    const zone = { job: 'GMT\\+9', UTC: 'UTC', browser: 'GMT\\+9' }[choice]
    const titles = () => page.locator('.lanes g.mark title').allTextContents()
    await until('marks', async () => (await titles()).length > 0)
    for (const title of await titles()) assert.match(title, new RegExp(`:\\d\\d ${zone}: `))
  }
  assert.deepEqual(page.errors, [])
  await page.context().close()
})

test('keys, focus and zones', async () => {
  const page = await open('jobs/nightly%2Fbackup')
  await page.keyboard.press('Tab')
  await page.evaluate(() => document.querySelector('.skip').focus())
  await page.keyboard.press('Enter')
  assert.equal(await page.evaluate(() => document.activeElement.id), 'main')
  assert.ok(page.url().endsWith('nightly%2Fbackup'), 'the skip link left the page')
  await page.keyboard.press('/')
  await page.getByRole('heading', { name: /^Jobs/ }).waitFor()
  await page.keyboard.type('nightly')
  await until('the search has what was typed', async () => (await page.locator('input[type=search]').inputValue()) === 'nightly')
  await page.go('runs')
  assert.equal(await page.evaluate(() => document.activeElement.tagName), 'H1')
  await page.go('jobs/nightly%2Fbackup')
  const next = page.locator('.facts time').first()
  const berlin = await next.innerText()
  assert.match(berlin, /02:30:00/)
  await page.locator('.tools select').selectOption('UTC')
  await until('UTC', async () => /0[01]:30:00/.test(await next.innerText()))
  assert.match(await page.locator('.ticks').innerText(), /02:30:00/)
  await page.context().close()
})
