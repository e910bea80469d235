// Runs the tests of the console where there is a browser and a Redis, and says loudly where there is none.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

const found = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome', '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'].find((f) => f && existsSync(f))
const lacks = []
if (!found) lacks.push('Chromium (Debian: apt-get install chromium; elsewhere set CHROMIUM to the browser)')
if (spawnSync('redis-server', ['--version']).error) lacks.push('redis-server')
if (lacks.length) {
  console.error(`\n!!! the console was NOT tested in a browser: there is no ${lacks.join(' and no ')}\n`)
  process.exit(process.env.CI ? 1 : 0)
}
const got = spawnSync(process.execPath, ['--test', '--test-concurrency=1', '--test-reporter=spec', ...process.argv.slice(2), ...['console', 'stored', 'form', 'graph', 'many'].map((name) => new URL(name + '.test.mjs', import.meta.url).pathname)], {
  stdio: 'inherit', env: { ...process.env, CHROMIUM: found },
})
process.exit(got.status ?? 1)
