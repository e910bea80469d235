// Pages of a browser for the tests, and what is asked of each.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { chromium } from 'playwright-core'
import { until } from './world.mjs'

export const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

export const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] })

export const looks = { light: {}, dark: { colorScheme: 'dark' }, phone: { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true } }

/** A page whose errors are collected. */
export async function open(browser, url, place, { options = {}, context } = {}) {
  const page = await (context ?? (await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options }))).newPage()
  page.setDefaultTimeout(10_000)
  page.errors = []
  page.outside = []
  // Not there is an answer: a lease that has just ended.
  page.on('console', (m) => m.type() === 'error' && !/\/locks\/[^/]+$/.test(m.location().url) && page.errors.push(m.text() + ' ' + m.location().url))
  page.on('pageerror', (e) => page.errors.push(String(e)))
  page.on('request', (r) => !r.url().startsWith(url) && page.outside.push(r.url()))
  page.go = async (where) => {
    await page.keyboard.press('Escape')
    await page.goto(url + '/#/' + where)
    await page.locator('h1').waitFor()
  }
  await page.go(place)
  return page
}

/** The page that is shown fits the screen, and axe finds nothing. */
export async function sound(page, place) {
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, `${place} is wider than the screen`)
  await page.evaluate(axe)
  const found = await page.evaluate(() => axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] }))
  assert.deepEqual(found.violations.map((v) => `${place}: ${v.id}: ${v.nodes.map((n) => n.html + ' ' + n.failureSummary).join('; ')}`), [])
}

/** Presses an action's button and answers its questions. */
export async function act(page, button, { reason = 'tested', fill = {}, check = [] } = {}) {
  await button.click()
  const dialog = page.locator('dialog[open]')
  await dialog.waitFor()
  for (const [name, value] of Object.entries(fill)) await dialog.locator(`[name=${name}]`).fill(value)
  for (const name of check) await dialog.locator(`[name=${name}]`).check()
  await dialog.locator('[name=author]').fill('ann')
  await dialog.locator('[name=reason]').fill(reason)
  await dialog.locator('button.strong').click()
  // A job with a tick each second may have a run in flight: then it is asked again.
  await until('the action is done', async () => {
    if ((await dialog.count()) === 0) return true
    if (/in flight/.test(await dialog.innerText({ timeout: 500 }))) await dialog.locator('button.strong').click({ timeout: 500 })
    return false
  }, 10_000).catch(() => {})
  page.errors = page.errors.filter((e) => !/409.*rewind/.test(e))
  await page.locator('dialog[open]').waitFor({ state: 'detached', timeout: 2000 }).catch(async (e) => {
    throw new Error(`${await dialog.innerText()}\n${e.message}`)
  })
}

/** An action is in the audit. */
export async function audited(url, action, target, reason = 'tested') {
  const rows = await (await fetch(`${url}/api/v1/audit?limit=50`)).json()
  const found = rows.find((a) => a.action === action && a.target === target)
  assert.ok(found, `no ${action} of ${target} in ${JSON.stringify(rows)}`)
  assert.deepEqual([found.who, found.via, found.reason, found.error], ['ann', 'console', reason, ''])
}
