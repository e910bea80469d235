import { computed, effect, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { ActionDialog, Said } from './actions'
import { down, get, locked, me, signedIn, signOut } from './api'
import { hear, paused, state } from './live'
import { Login } from './login'
import { overview } from './overviewstate'
import { href, route } from './router'
import { duration, now, offset, short, synchronize, zone, type Zone, zoneFor, zoneName } from './time'
import type { Me, Namespace } from './types'
import { Audit } from './pages/audit'
import { Generations } from './pages/generations'
import { Graph } from './pages/graph'
import { Job } from './pages/job'
import { Jobs } from './pages/jobs'
import { Locks } from './pages/locks'
import { Nodes } from './pages/nodes'
import { Overview } from './pages/overview'
import { Run } from './pages/run'
import { Runs } from './pages/runs'
import { Store } from './pages/store'
import { Timeline } from './pages/timeline'
import { openSearch, Title } from './ui'

const pages: [string, string][] = [
  ['overview', 'Overview'], ['jobs', 'Jobs'], ['runs', 'Runs'], ['timeline', 'Timeline'], ['graph', 'Graph'], ['nodes', 'Nodes'],
  ['generations', 'Generations'], ['locks', 'Locks'], ['audit', 'Audit'],
]

const namespace = signal('')
const called = computed(() => document.documentElement.dataset.name || namespace.value || 'Escapement')

effect(() => {
  const r = route.value
  const page = pages.find(([p]) => p === r.page)?.[1] ?? r.page
  document.title = [r.name, page, called.value].filter(Boolean).join(' · ')
})

// The icon is red while something is failing.
effect(() => {
  const o = overview.value
  const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]')
  if (icon) icon.href = o && (o.failing.count > 0 || o.late.count > 0) ? './favicon-bad.svg' : './favicon.svg'
})

export function App() {
  useEffect(() => {
    document.addEventListener('keydown', keys)
    const identify = () =>
      get<Me>('me').then(
        (p) => (me.value = p.items),
        () => {},
      )
    const look = async () => {
      const asked = Date.now()
      await get<Namespace>('namespace').then(
        (p) => {
          namespace.value = p.items.name
          synchronize(p.items.now, asked, Date.now())
        },
        () => {},
      )
    }
    void identify()
    void look()
    const timer = setInterval(() => {
      if (document.hidden || locked.value) return
      if (!me.value) void identify()
      void look()
    }, 20_000)
    const stop = hear((c) => {
      if (c.name !== 'gap') return
      if (!me.value) void identify()
      void look()
    })
    return () => {
      document.removeEventListener('keydown', keys)
      clearInterval(timer)
      stop()
    }
  }, [])
  const r = route.value
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <Top />
      <Said />
      {down.value && (
        <p class="banner" role="alert">
          {down.value} What is shown may be old; the next look comes by itself.
        </p>
      )}
      <main id="main" tabIndex={-1}>
        {locked.value ? <Login /> : <Page key={r.page + '/' + r.name} page={r.page} name={r.name} />}
      </main>
      <Foot />
      <ActionDialog />
    </>
  )
}

function Page({ page, name }: { page: string; name: string }) {
  switch (page) {
    case 'overview':
      return <Overview />
    case 'jobs':
      return name ? <Job name={name} /> : <Jobs />
    case 'runs':
      return name ? <Run id={name} /> : <Runs />
    case 'timeline':
      return <Timeline />
    case 'graph':
      return <Graph />
    case 'store':
      return <Store name={name} />
    case 'nodes':
      return <Nodes />
    case 'generations':
      return <Generations />
    case 'locks':
      return <Locks />
    case 'audit':
      return <Audit />
  }
  return (
    <>
      <Title>There is no page {page}</Title>
      <a href={href('overview')}>Overview</a>
    </>
  )
}

function skip(e: Event) {
  e.preventDefault() // the address's "#" is the place in the console
  document.getElementById('main')?.focus()
}

const typing = (t: EventTarget | null) => t instanceof HTMLElement && (t.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(t.tagName))

/** "/" goes to the search of the page, or to the jobs. */
function keys(e: KeyboardEvent) {
  if (e.key !== '/' || e.ctrlKey || e.metaKey || e.altKey || typing(e.target) || document.querySelector('dialog[open]')) return
  e.preventDefault()
  const search = document.querySelector<HTMLInputElement>('input[type=search]')
  if (search) search.focus()
  else openSearch(href('jobs'))
}

function Top() {
  const o = overview.value
  const trouble = o ? o.failing.count + o.late.count : 0
  const shown = down.value && state.value === 'live' ? 'polling' : state.value
  return (
    <header class="top">
      <a class="brand" href={href('overview')}>
        <svg width="18" height="18" viewBox="0 0 32 32" aria-hidden="true">
          <circle cx="16" cy="16" r="15" class={trouble ? 'bad' : 'good'} />
          <path d="M16 7v9l6 4" />
        </svg>
        {called.value}
      </a>
      <nav aria-label="pages">
        {pages.map(([p, text]) => (
          <a key={p} href={href(p)} aria-current={route.value.page === p ? 'page' : undefined}>
            {text}
          </a>
        ))}
      </nav>
      <div class="tools">
        <span class="dim zone" title="the zone of the times on this page">
          {zoneName()}
        </span>
        <label>
          <span class="unseen">time zone</span>
          <select value={zone.value} onChange={(e) => (zone.value = e.currentTarget.value as Zone)}>
            <option value="job">job's zone</option>
            <option value="UTC">UTC</option>
            <option value="browser">my zone</option>
          </select>
        </label>
        {!locked.value && (
          <button type="button" class={`live ${shown}`} onClick={() => (paused.value = !paused.value)} title={paused.value ? 'go on' : 'hold the page still'}>
            <span class="dot" aria-hidden="true" />
            {shown}
          </button>
        )}
      </div>
    </header>
  )
}

function Foot() {
  const m = me.value
  const off = offset.value
  return (
    <footer>
      {m && (
        <>
          <span>Escapement {m.version || 'development build'}</span>
          <span>served by {m.node || 'a node without a name'}</span>
        </>
      )}
      <span>
        Redis' time <time>{short(now.value, zoneFor())}</time> {zoneName()}
      </span>
      <span class={Math.abs(off) > 1000 ? 'warn' : ''} title="how far this browser's clock is behind Redis' clock; times are corrected by it">
        this browser's offset {duration(off)}
      </span>
      {m && (
        <span>
          {m.open ? 'no sign-in: everybody may operate' : [m.name !== m.role && m.name, m.role].filter(Boolean).join(', ')}
        </span>
      )}
      {m && signedIn() && (
        <button type="button" class="quiet" onClick={() => signOut()}>
          sign out
        </button>
      )}
      <a href="./api/v1/openapi.json">API</a>
    </footer>
  )
}
