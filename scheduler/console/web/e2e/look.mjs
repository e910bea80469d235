// Takes pictures of all pages: node e2e/look.mjs FOLDER [seconds to wait first] [light,dark,phone]; with "docs" the pictures of docs/images alone.
import { mkdirSync } from 'node:fs'
import { chromium } from 'playwright-core'
import { build, cluster, jobs, pause, stopAll, until } from './world.mjs'

const folder = process.argv[2] ?? 'shots'
mkdirSync(folder, { recursive: true })
build()
try {
  const green = jobs.replace('@every 3s', '@every 5s').replace('name: long', 'name: longer')
  const c = await cluster({ jobs, nodes: [{ name: 'a1', generation: 'blue' }, { name: 'a2', generation: 'blue' }, { name: 'b1', generation: 'green', jobs: green }] })
  c.cli('jobs', 'pause', 'hourly-report', '--reason', 'the warehouse is counted', '--until', '2d')
  c.cli('jobs', 'run', 'long')
  c.cli('jobs', 'run', 'nightly/backup', '--payload', '{"full": true}')
  c.begin('lock', 'deploy:web', '--ttl', '10s', '--', 'sleep', '1000')
  await pause(Number(process.argv[3] ?? 20) * 1000)
  const runs = await (await fetch(c.nodes[0].url + '/api/v1/runs?job=flaky&outcome=failed&limit=1')).json()
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] })
  const places = { overview: '', jobs: 'jobs', job: 'jobs/flaky', sharded: 'jobs/parts', nightly: 'jobs/nightly%2Fbackup', run: 'runs/' + runs[0]?.run, runs: 'runs', timeline: 'timeline', graph: 'graph', store: 'store', minutes: 'timeline?span=10m', nodes: 'nodes', generations: 'generations', locks: 'locks', audit: 'audit' }
  for (const [look, options] of Object.entries({
    light: { viewport: { width: 1280, height: 800 } },
    dark: { viewport: { width: 1280, height: 800 }, colorScheme: 'dark' },
    phone: { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true },
  })) {
    if (process.argv[4] && !process.argv[4].split(',').includes(look)) continue
    const page = await (await browser.newContext(options)).newPage()
    page.on('console', (m) => ['error', 'warning'].includes(m.type()) && console.log(look, m.type(), m.text()))
    page.on('pageerror', (e) => console.log(look, 'thrown', e.stack))
    for (const [name, place] of Object.entries(places)) {
      await page.goto(c.nodes[0].url + '/#/' + place)
      await page.waitForSelector('h1')
      await pause(1200)
      await page.screenshot({ path: `${folder}/${name}-${look}.png`, fullPage: name !== 'jobs' })
    }
  }
  if (process.argv[4] === 'docs') {
    const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage()
    for (const [name, place] of Object.entries({ overview: '', jobs: 'jobs', job: 'jobs/flaky', timeline: 'timeline?span=10m' })) {
      await page.goto(c.nodes[0].url + '/#/' + place)
      await pause(1500)
      if (!place) await page.locator('.note.bad').waitFor()
      await page.screenshot({ path: `${folder}/${name}.png` })
    }
  }
  await browser.close()
} finally {
  await stopAll()
}
