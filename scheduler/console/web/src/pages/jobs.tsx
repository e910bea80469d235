import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { ask, may } from '../actions'
import { get, query, type Page } from '../api'
import { bulk } from '../jobactions'
import { JobState, pauseText } from '../jobstate'
import { hear } from '../live'
import { overview } from '../overviewstate'
import { href, route, setQuery } from '../router'
import type { EndView, JobView } from '../types'
import { Empty, Failure, State, Strip, Time, Title } from '../ui'

const first = 100 // rows that are read at first
const more = 200 // and when the end of what is there comes near
const beyond = 8 // rows that are drawn beyond what is seen
const refreshGap = 1000 // ms

const narrow = matchMedia('(max-width: 760px)')
const rowHeight = () => (narrow.matches ? 84 : 36)

/** The rows of a search: read page by page as they are scrolled to, and what is seen is read again when something changes. */
class Rows {
  rows: JobView[] = []
  next = ''
  whole = false // the last page is there
  error: Error | undefined
  ends: Record<string, EndView[]> = {}
  private abort = new AbortController()
  private loading = false

  constructor(readonly q: string, private readonly changed: () => void) {
    void this.load(first)
  }

  close() {
    this.abort.abort()
  }

  async load(limit: number) {
    if (this.loading || this.whole) return
    this.loading = true
    try {
      const page = await this.page(limit, this.next)
      this.rows = this.rows.concat(page.items)
      this.next = page.next
      this.whole = !page.next
      this.error = undefined
    } catch (e) {
      this.error = e as Error
    }
    this.loading = false
    if (!this.abort.signal.aborted) this.changed()
  }

  private page(limit: number, after: string): Promise<Page<JobView[]>> {
    return get<JobView[]>('jobs' + query({ q: this.q, limit, after }), this.abort.signal)
  }

  /** Reads rows from one index to another again, and how their ticks ended. */
  async refresh(from: number, to: number, entries: boolean) {
    const seen = this.rows.slice(from, to)
    if (seen.length === 0) return
    try {
      const [page, ends] = await Promise.all([
        entries ? this.page(seen.length, from > 0 ? this.rows[from - 1]!.name : '') : null,
        get<Record<string, EndView[]>>('ends' + query({ job: seen.map((j) => j.name), each: 20 }), this.abort.signal),
      ])
      Object.assign(this.ends, ends.items)
      if (page) {
        const by = new Map(page.items.map((j) => [j.name, j]))
        this.rows = this.rows.map((j) => by.get(j.name) ?? j)
      }
      this.error = undefined
    } catch (e) {
      this.error = e as Error
    }
    if (!this.abort.signal.aborted) this.changed()
  }
}

export function Jobs() {
  const q = route.value.query.get('q') ?? ''
  const [, redraw] = useState(0)
  const [chosen, choose] = useState<Set<string>>(new Set())
  const [at, scrollTo] = useState(0)
  const box = useRef<HTMLDivElement>(null)
  const shown = useRef<Rows | null>(null)
  const data = useMemo(() => new Rows(q, () => redraw((n) => n + 1)), [q])
  // The rows of the search before stay until the first page of the new one is there.
  if (data.rows.length > 0 || data.whole || data.error || !shown.current) shown.current = data
  const rows = shown.current!.rows

  const height = rowHeight()
  const seen = Math.ceil((box.current?.clientHeight ?? innerHeight) / height)
  const from = Math.max(0, Math.floor(at / height) - beyond)
  const to = Math.min(rows.length, from + seen + 2 * beyond)

  useEffect(() => {
    box.current?.scrollTo(0, 0)
    scrollTo(0)
    return () => data.close()
  }, [data])
  useEffect(() => {
    if (to > data.rows.length - 2 * seen) void data.load(more)
  }, [data, to, data.rows.length])
  // What is seen is kept up to date.
  const range = useRef({ data, from, to })
  range.current = { data, from, to }
  useEffect(() => {
    const timer = setTimeout(() => void data.refresh(from, to, false), 60)
    return () => clearTimeout(timer)
  }, [data, from, to])
  useEffect(() => {
    let timer = 0
    let free = 0
    const refresh = async () => {
      timer = 0
      const begun = Date.now()
      const r = range.current
      await r.data.refresh(r.from, r.to, true)
      free = Date.now() + Math.max(refreshGap, 4 * (Date.now() - begun))
    }
    const stop = hear((c) => {
      if (c.name !== 'nodes' && !timer) timer = window.setTimeout(refresh, Math.max(300, free - Date.now()))
    })
    return () => {
      clearTimeout(timer)
      stop()
    }
  }, [])

  const done = () => {
    choose(new Set())
    void data.refresh(from, to, true)
  }
  const total = overview.value?.jobs
  const all = q ? `${rows.length}${shown.current!.whole ? '' : '+'} of ${total ?? '…'}` : `${total ?? rows.length}`
  return (
    <div class="fill">
      <Title
        side={
          <>
            {may() && <a href={href('store')}>New stored job</a>}
            <label class="search">
              <span class="unseen">search jobs by name</span>
              <input type="search" placeholder="search by name  /" defaultValue={q} onInput={(e) => setQuery('q', e.currentTarget.value.trim())} autoComplete="off" spellcheck={false} />
            </label>
          </>
        }
      >
        Jobs <small class="dim">{all}</small>
      </Title>
      <Failure error={shown.current!.error} />
      {may() && <Bulk chosen={chosen} choose={choose} q={q} rows={rows} whole={shown.current!.whole} done={done} />}
      {rows.length === 0 && shown.current!.whole ? (
        q ? (
          <Empty type={`escapement jobs list --match ${q}`}>No job's name has “{q}” in it.</Empty>
        ) : (
          <Empty type="escapement run --config config.yaml">There are no jobs yet. A node brings those of its configuration.</Empty>
        )
      ) : (
        <div class={may() ? 'vtable' : 'vtable viewer'} role="table" aria-label="jobs" aria-rowcount={rows.length + 1}>
          <div role="rowgroup">
            <div role="row" class="vrow vhead">
              {may() && <span role="columnheader" class="pick"><span class="unseen">chosen</span></span>}
              <span role="columnheader">State</span>
              <span role="columnheader">Name</span>
              <span role="columnheader">Schedule</span>
              <span role="columnheader">Last 20 ticks</span>
              <span role="columnheader">Last</span>
              <span role="columnheader" class="c-success">Succeeded</span>
              <span role="columnheader">Next</span>
              <span role="columnheader" class="c-owner">Owner</span>
            </div>
          </div>
          <div role="rowgroup" class="vbody" ref={box} tabIndex={0} aria-label="jobs, scrolls" onScroll={(e) => scrollTo(e.currentTarget.scrollTop)}>
            <div class="vpad" role="presentation" style={{ height: rows.length * height + 'px' }}>
              {rows.slice(from, to).map((j, i) => (
                <Row
                  key={j.name}
                  job={j}
                  index={from + i}
                  top={(from + i) * height}
                  ends={shown.current!.ends[j.name]}
                  chosen={chosen.has(j.name)}
                  choose={(yes) => {
                    const set = new Set(chosen)
                    if (yes) set.add(j.name)
                    else set.delete(j.name)
                    choose(set)
                  }}
                />
              ))}
            </div>
          </div>
        </div>
      )}
    </div>
  )
}

function Row(p: { job: JobView; index: number; top: number; ends?: EndView[]; chosen: boolean; choose: (yes: boolean) => void }) {
  const j = p.job
  const when = j.after.length ? `after ${j.after.join(', ')}` : j.schedule
  return (
    <div role="row" class="vrow" aria-rowindex={p.index + 2} style={{ top: p.top + 'px' }}>
      {may() && (
        <span role="cell" class="pick">
          <input type="checkbox" aria-label={`choose ${j.name}`} checked={p.chosen} onChange={(e) => p.choose(e.currentTarget.checked)} />
        </span>
      )}
      <span role="cell" class="c-state">
        <JobState job={j} />
      </span>
      <span role="cell" class="c-name">
        <a href={href('jobs', j.name)} class="name" title={j.pause ? 'paused ' + pauseText(j) : j.name}>
          {j.name}
        </a>
        {j.shards > 1 && <small class="dim"> ×{j.shards}</small>}
        {j.pause && <small class="dim"> {j.pause.author}: {j.pause.reason}</small>}
      </span>
      <span role="cell" class="c-schedule dim" title={`${when} ${j.time_zone}`}>
        {when} {!j.after.length && j.time_zone !== 'UTC' && <small>{j.time_zone}</small>}
      </span>
      <span role="cell" class="c-strip">
        <Strip ends={p.ends} />
      </span>
      <span role="cell" class="c-last">{j.last_outcome ? <State of={j.last_outcome} /> : <span class="none">–</span>}</span>
      <span role="cell" class="c-success">
        <Time at={j.last_success} tz={j.time_zone} rel />
      </span>
      <span role="cell" class="c-next">
        <Time at={j.next} tz={j.time_zone} rel />
      </span>
      <span role="cell" class="c-owner dim" title={j.owner}>{j.owner || '–'}</span>
    </div>
  )
}

function Bulk(p: { chosen: Set<string>; choose: (s: Set<string>) => void; q: string; rows: JobView[]; whole: boolean; done: () => void }) {
  const n = p.chosen.size
  const everything = async () => {
    if (p.whole) return p.choose(new Set(p.rows.map((j) => j.name)))
    const { items } = await get<string[]>('job-names')
    const q = p.q.toLowerCase()
    p.choose(new Set(items.filter((name) => name.toLowerCase().includes(q))))
  }
  const start = (verb: 'pause' | 'resume' | 'run') => ask(bulk(verb, [...p.chosen].sort(), p.done))
  return (
    <div class="bulk" role="toolbar" aria-label="actions on chosen jobs">
      <button type="button" class="quiet" onClick={() => (n ? p.choose(new Set()) : void everything())}>
        {n ? 'choose none' : p.q ? 'choose all found' : 'choose all'}
      </button>
      <span class="dim">{n ? `${n} chosen` : 'none chosen'}</span>
      <button type="button" disabled={!n} onClick={() => start('pause')}>
        Pause…
      </button>
      <button type="button" disabled={!n} onClick={() => start('resume')}>
        Resume…
      </button>
      <button type="button" disabled={!n} onClick={() => start('run')}>
        Run…
      </button>
    </div>
  )
}
