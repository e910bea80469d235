// What changes, as the API tells it. One tab of a browser listens and tells the others: browsers open few connections to a host.
import { signal } from '@preact/signals'
import { base, down, locked, request } from './api'
import type { NodeView, RunView } from './types'

export type Change = { name: 'runs'; runs: RunView[] } | { name: 'nodes'; nodes: NodeView[] } | { name: 'gap' } | { name: 'poll' }

export type State = 'live' | 'polling' | 'paused'
export const state = signal<State>('polling')
export const paused = signal(false)

const pollEvery = 5000
const name = 'escapement ' + base.pathname
const hearers = new Set<(c: Change) => void>()
const channel = typeof BroadcastChannel === 'undefined' ? null : new BroadcastChannel(name)
let heard = 0 // when something last came from the tab that listens, ms

/** Calls f with what changes, until the returned function is called. */
export function hear(f: (c: Change) => void): () => void {
  hearers.add(f)
  return () => void hearers.delete(f)
}

function tell(c: Change) {
  if (paused.value || locked.value || document.hidden) return // a page that is seen again asks for everything
  for (const f of hearers) f(c)
}

type Told = Change | { name: 'alive' } | { name: 'lost' }
type Message = Told | { name: 'who' }
let leads = false

function received(m: Told) {
  heard = m.name === 'lost' ? 0 : Date.now()
  if (!paused.value && ending) state.value = heard ? 'live' : 'polling'
  if (m.name !== 'alive' && m.name !== 'lost') tell(m)
}

channel?.addEventListener('message', (e) => {
  const m = e.data as Message
  if (m.name !== 'who') received(m)
  else if (leads) channel.postMessage({ name: 'alive' })
})

function share(m: Told) {
  channel?.postMessage(m)
  received(m)
}

/** Reads the stream until it ends. fetch, and not EventSource, because that cannot send a token. */
async function listen(signal: AbortSignal, last: { id: string }) {
  const r = await request('events', { signal, headers: last.id ? { 'Last-Event-ID': last.id } : {}, cache: 'no-store' })
  leads = true
  share(last.id ? { name: 'alive' } : { name: 'gap' })
  const reader = r.body!.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const messages = (rest + value).split('\n\n')
    rest = messages.pop() ?? ''
    for (const text of messages) {
      const fields = new Map(text.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]))
      last.id = fields.get('id') ?? last.id
      const event = fields.get('event')
      if (event === 'runs') share({ name: 'runs', runs: JSON.parse(fields.get('data') ?? '[]') })
      else if (event === 'nodes') share({ name: 'nodes', nodes: JSON.parse(fields.get('data') ?? '[]') })
      else share({ name: event === 'gap' ? 'gap' : 'alive' })
    }
  }
}

const pause = (ms: number, signal: AbortSignal) =>
  new Promise<void>((done) => {
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', () => (clearTimeout(timer), done()), { once: true })
  })

async function lead(signal: AbortSignal) {
  const last = { id: '' }
  for (let wait = 1000; !signal.aborted; wait = Math.min(2 * wait, 15_000)) {
    const begun = Date.now()
    await listen(signal, last).catch(() => {})
    leads = false
    share({ name: 'lost' })
    if (Date.now() - begun > 5000) wait = 1000
    await pause(wait, signal)
  }
}

let ending: AbortController | null = null

/** Listens, or waits for the turn to, while the page is seen, not paused and signed in. */
function update() {
  const wanted = !document.hidden && !paused.value && !locked.value
  if (!wanted) {
    ending?.abort()
    ending = null
    state.value = paused.value ? 'paused' : 'polling'
    return
  }
  if (ending) return
  const { signal } = (ending = new AbortController())
  tell({ name: 'gap' })
  channel?.postMessage({ name: 'who' })
  if (navigator.locks) navigator.locks.request(name, { signal }, () => lead(signal)).catch(() => {}) // aborted while it waited
  else void lead(signal) // no secure context: each tab that is seen listens for itself
}

export function start() {
  document.addEventListener('visibilitychange', update)
  paused.subscribe(update)
  locked.subscribe(update)
  setInterval(() => {
    if (!ending || (Date.now() - heard < 20_000 && !down.value)) return // the stream says something every 15 s
    state.value = 'polling'
    tell({ name: 'poll' })
  }, pollEvery)
}
