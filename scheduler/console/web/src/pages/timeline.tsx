import { useEffect, useState } from 'preact/hooks'
import { get, query, segment } from '../api'
import { planned } from '../jobstate'
import { Axis, Lane, marks, x, type Window } from '../lane'
import { onRuns, useGet } from '../query'
import { route, setQuery } from '../router'
import { full, now, zoneFor } from '../time'
import type { EndView, JobView, RunView, TickView } from '../types'
import { Empty, Failure, JobLink, Shape, Title } from '../ui'
import { useWidth } from '../width'

const hour = 3600e3
const spans: [string, number][] = [['10m', hour / 6], ['1h', hour], ['6h', 6 * hour], ['24h', 24 * hour], ['48h', 48 * hour], ['7d', 168 * hour]]
const spanMost = 14 * 24 * hour
const spanLeast = 60e3
const step = 40 // lanes that are shown at first, and more at a time
const ticksMost = 300 // planned ticks of a job that are asked for

/** The span with now in its middle that has the oldest of some ticks: from 1 h to 48 h. */
function spanOf(ends: Record<string, EndView[]>): number {
  const oldest = Math.min(now.peek(), ...Object.values(ends).map((of) => Date.parse(of[0]?.tick ?? '') || Infinity))
  return Math.min(48 * hour, spans.find(([, ms]) => ms >= hour && ms / 2 >= now.peek() - oldest)?.[1] ?? 48 * hour)
}

/** What has been and what is planned, job by job. */
export function Timeline() {
  const q = route.value.query.get('q') ?? ''
  const [most, setMost] = useState(step)
  const named = route.value.query.get('span')
  const [chosen, setSpan] = useState<number | null>(null)
  useEffect(() => setSpan(spans.find(([s]) => s === named)?.[1] ?? null), [named])
  const [fits, setFits] = useState<number | null>(null)
  const span = chosen ?? fits ?? 48 * hour
  const [centre, setCentre] = useState<number | null>(null) // null: now
  const [box, width] = useWidth()
  const jobs = useGet<JobView[]>('jobs' + query({ q, limit: most }), { gap: 5000 })
  const names = jobs.items?.map((j) => j.name) ?? []
  const ends = useGet<Record<string, EndView[]>>(names.length ? 'ends' + query({ job: names, each: Math.max(20, Math.min(200, Math.floor(10_000 / names.length))) }) : null, { when: onRuns, gap: 1500 })
  const running = useGet<RunView[]>('runs?outcome=running&limit=300', { when: onRuns, gap: 1500 })

  useEffect(() => {
    if (fits === null && ends.items) setFits(spanOf(ends.items))
  }, [ends.items])

  const middle = centre ?? now.value
  const w = { from: middle - span / 2, to: middle + span / 2 }
  const ahead = usePlanned(names, w)
  const due = (j: JobView) => planned(j, ahead[j.name] ?? [])

  const all = (name: string): EndView[] => {
    const going = (running.items ?? []).filter((r) => r.job === name && !r.of && r.started)
    return (ends.items?.[name] ?? []).concat(going.map((r) => ({ run: r.run, tick: r.tick, count: 1, attempt: r.attempt, outcome: 'running', reason: r.reason, started: r.started, duration_ms: r.duration_ms })))
  }
  const zoom = (by: number) => setSpan(Math.min(spanMost, Math.max(spanLeast, span * by)))
  const pan = (by: number) => setCentre(middle + by * span)
  const keys = (e: KeyboardEvent) => {
    const known: Record<string, () => void> = { ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), '+': () => zoom(1 / 1.5), '-': () => zoom(1.5), Home: () => setCentre(null) }
    if (!known[e.key]) return
    e.preventDefault()
    known[e.key]!()
  }
  const drag = (e: PointerEvent) => {
    if ((e.target as Element).closest('a') || e.button !== 0) return
    const at = e.clientX
    const from = middle
    const move = (m: PointerEvent) => setCentre(from - ((m.clientX - at) / lane) * span)
    addEventListener('pointermove', move)
    addEventListener('pointerup', () => removeEventListener('pointermove', move), { once: true })
  }
  const lane = Math.max(160, width - (width > 700 ? 200 : 0))
  return (
    <>
      <Title
        side={
          <label class="search">
            <span class="unseen">search jobs by name</span>
            <input type="search" placeholder="search by name  /" defaultValue={q} onInput={(e) => setQuery('q', e.currentTarget.value.trim())} autoComplete="off" />
          </label>
        }
      >
        Timeline
      </Title>
      <div class="bulk" role="toolbar" aria-label="what is shown">
        {spans.map(([text, ms]) => (
          <button
            type="button"
            key={text}
            aria-pressed={span === ms}
            onClick={() => {
              setSpan(ms)
              setQuery('span', text)
            }}
          >
            {text}
          </button>
        ))}
        <button type="button" onClick={() => zoom(1 / 1.5)} aria-label="zoom in">+</button>
        <button type="button" onClick={() => zoom(1.5)} aria-label="zoom out">−</button>
        <button type="button" onClick={() => pan(-0.25)} aria-label="earlier">←</button>
        <button type="button" onClick={() => setCentre(null)} disabled={centre === null}>now</button>
        <button type="button" onClick={() => pan(0.25)} aria-label="later">→</button>
        <span class="legend dim">
          <Shape of="succeeded" /> full: ran <Shape of="failed" /> with a gap: went wrong, amber: and was run again <Shape of="skipped" /> low: did not run <span class="tick" aria-hidden="true" /> planned
        </span>
      </div>
      <Failure error={jobs.error ?? ends.error} />
      {jobs.items?.length === 0 && <Empty type="escapement jobs list">{q ? `No job's name has “${q}” in it.` : 'There are no jobs yet.'}</Empty>}
      <div ref={box} class="timeline" tabIndex={0} role="group" aria-label="timeline; arrows move it, + and - zoom" onKeyDown={keys} onPointerDown={drag}>
        {names.length > 0 && (
          <div class="line head">
            <span class="dim">ticks at once</span>
            <svg class="lanes" width={lane} height="46" role="img" aria-label="how many ticks there are at once">
              <Axis w={w} width={lane} height={46} />
              <Load of={jobs.items!.map((j) => ({ ends: all(j.name), ticks: due(j) }))} w={w} width={lane} />
            </svg>
          </div>
        )}
        {jobs.items?.map((j) => {
          const e = all(j.name)
          return (
            <div class="line" key={j.name}>
              <JobLink name={j.name} />
              <svg class="lanes" width={lane} height="22" role="group" aria-label={`${j.name}: ${marks(e, w, lane).length} marks, ${due(j).length} planned ticks`}>
                <Grid w={w} width={lane} />
                <Lane ends={e} ticks={due(j)} w={w} width={lane} dense={ticksMost} />
              </svg>
            </div>
          )
        })}
      </div>
      {jobs.next && most + step <= 200 && (
        <button type="button" onClick={() => setMost(most + step)}>
          Show more jobs
        </button>
      )}
      {jobs.next && most + step > 200 && <p class="dim">There are more jobs; search for them by name.</p>}
    </>
  )
}

function Grid({ w, width }: { w: Window; width: number }) {
  const here = x(w, width, now.value)
  return (
    <g class="axis">
      <line x1="0" x2={width} y1="21.5" y2="21.5" />
      {here >= 0 && here <= width && <line class="now" x1={here} x2={here} y1="0" y2="22" />}
    </g>
  )
}

/** The next ticks of some jobs inside a window, asked for anew when the window is another one. */
function usePlanned(names: string[], w: Window): Record<string, TickView[]> {
  const [ahead, set] = useState<Record<string, TickView[]>>({})
  const grain = (w.to - w.from) / 4
  const from = Math.max(now.peek(), Math.floor(w.from / grain) * grain)
  const key = names.join('\n') + Math.floor(w.to / grain) + '/' + Math.floor(w.from / grain)
  useEffect(() => {
    if (w.to < now.peek()) return set({})
    const abort = new AbortController()
    const timer = setTimeout(async () => {
      const found: Record<string, TickView[]> = {}
      const queue = [...names]
      const worker = async () => {
        for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
          const page = await get<TickView[]>(`jobs/${segment(name)}/ticks` + query({ from: new Date(from).toISOString(), limit: ticksMost }), abort.signal).catch(() => null)
          if (page) found[name] = page.items
        }
      }
      await Promise.all([worker(), worker(), worker()])
      if (!abort.signal.aborted) set(found)
    }, 150)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [key])
  return ahead
}

const bucket = 6 // px

/** How many ticks of the shown jobs fall together. */
function Load({ of, w, width }: { of: { ends: EndView[]; ticks: TickView[] }[]; w: Window; width: number }) {
  const n = Math.ceil(width / bucket)
  const ran = new Array<number>(n).fill(0)
  const due = new Array<number>(n).fill(0)
  for (const { ends, ticks } of of) {
    for (const e of ends) {
      const at = Math.floor(x(w, width, Date.parse(e.tick ?? '')) / bucket)
      if (at >= 0 && at < n) ran[at]! += 1
    }
    for (const t of ticks) {
      const at = Math.floor(x(w, width, Date.parse(t.tick)) / bucket)
      if (at >= 0 && at < n) due[at]! += 1
    }
  }
  const top = Math.max(1, ...ran, ...due)
  const each = (w.to - w.from) / n
  return (
    <g>
      {ran.map((r, i) => {
        const count = r + due[i]!
        if (count === 0) return null
        const h = Math.max(2, 26 * Math.sqrt(Math.min(count, top) / top))
        return (
          <rect key={i} class={r > 0 ? 'load' : 'load planned'} x={i * bucket} y={45 - h} width={bucket - 1} height={h}>
            <title>{`${count} ticks from ${full(w.from + i * each, zoneFor())}`}</title>
          </rect>
        )
      })}
    </g>
  )
}
