// Ticks on an axis of time: what has been, and what is planned.
import { href } from './router'
import { clock, day, full, now, zoneFor } from './time'
import type { EndView, TickView } from './types'
import { bad, endTitle, followed, ran, tone } from './words'

export interface Window {
  from: number // ms
  to: number
}

export const x = (w: Window, width: number, ms: number) => ((ms - w.from) / (w.to - w.from)) * width

const rank = ['again', 'idle', 'good', 'busy', 'warn', 'bad'] // again: another attempt followed, and says how it ended

interface Mark {
  x: number
  width: number
  tone: string
  hollow: boolean
  short: boolean
  title: string
  run: string
}

const begun = (e: EndView) => Date.parse(e.started ?? e.tick ?? '')

/** Ends as marks, first those that ran. Marks of a kind that would be drawn over each other are one, which shows the worst. */
export function marks(ends: EndView[], w: Window, width: number, tz?: string): Mark[] {
  const all: Mark[] = []
  const again = followed(ends)
  const sorted = [...ends].sort((a, b) => Number(ran(b.outcome)) - Number(ran(a.outcome)) || begun(a) - begun(b))
  for (const e of sorted) {
    const at = begun(e)
    const until = e.until ? Date.parse(e.until) : at + (e.outcome === 'running' ? Math.max(e.duration_ms, now.peek() - at) : e.duration_ms)
    if (!(until >= w.from && at <= w.to)) continue
    const left = Math.max(0, x(w, width, at))
    const m: Mark = {
      x: left, width: Math.max(2.5, Math.min(width, x(w, width, until)) - left), tone: again.has(e) ? 'again' : tone(e.outcome), hollow: bad.includes(e.outcome),
      short: !ran(e.outcome), title: `${full(Date.parse(e.tick ?? ''), zoneFor(tz))}: ${endTitle(e)}`, run: e.run,
    }
    const before = all.at(-1)
    if (before && before.short === m.short && before.x + before.width > m.x - 0.5 && m.x - before.x < 3) {
      before.width = Math.max(before.width, m.x + m.width - before.x)
      if (rank.indexOf(m.tone) >= rank.indexOf(before.tone)) Object.assign(before, { tone: m.tone, hollow: m.hollow, run: m.run, title: m.title })
    } else all.push(m)
  }
  return all
}

interface Drawn {
  ends: EndView[]
  ticks: TickView[]
  w: Window
  width: number
  height?: number
  tz?: string
  /** How many ticks were asked for: where there are as many, more follow. */
  dense?: number
}

/** One job's ticks, drawn at the top of a group. */
export function Lane({ ends, ticks, w, width, height = 22, tz, dense }: Drawn) {
  const planned: number[] = []
  for (const t of ticks) {
    const at = x(w, width, Date.parse(t.tick))
    if (at >= 0 && at <= width && (planned.length === 0 || at - planned.at(-1)! >= 3)) planned.push(at)
  }
  const last = dense && ticks.length >= dense ? Math.max(0, x(w, width, Date.parse(ticks.at(-1)!.tick))) : width
  return (
    <>
      {last < width && <rect class="planned more" x={last} y={height / 2 - 2} width={width - last} height="4" />}
      {planned.map((at) => (
        <rect key={at} class="planned" x={at} y={height / 2 - 4} width="2" height="8" />
      ))}
      {marks(ends, w, width, tz).map((m) => {
        const bar = (
          <g class={`${m.tone === 'again' ? 'warn' : m.tone} mark`}>
            <title>{m.title}</title>
            {m.short && <rect class="gap" x={m.x - 1} y={height - 8} width={m.width + 2} height="8" />}
            {m.short ? <rect x={m.x} y={height - 7} width={m.width} height="5" /> : <rect x={m.x} y="2" width={m.width} height={height - 4} />}
            {m.hollow && <rect class="gap" x={m.x} y={height / 2} width={m.width} height="3" />}
          </g>
        )
        return m.run ? (
          <a key={`${m.x} ${m.short}`} href={href('runs', m.run)} tabIndex={-1} aria-label={m.title}>
            {bar}
          </a>
        ) : (
          <g key={`${m.x} ${m.short}`}>{bar}</g>
        )
      })}
    </>
  )
}

const steps = [60e3, 5 * 60e3, 15 * 60e3, 3600e3, 3 * 3600e3, 6 * 3600e3, 24 * 3600e3]

/** The axis with round hours, the borders of days, and a line for now. */
export function Axis({ w, width, height, tz }: { w: Window; width: number; height: number; tz?: string }) {
  const z = zoneFor(tz)
  const step = steps.find((s) => ((w.to - w.from) / s) * 64 < width) ?? steps.at(-1)!
  const at: number[] = []
  for (let t = Math.ceil(w.from / step) * step; t < w.to; t += step) at.push(t)
  const here = x(w, width, now.value)
  return (
    <g class="axis">
      {at.map((t) => {
        const text = clock(t, z)
        const midnight = text === '00:00'
        return (
          <g key={t}>
            <line x1={x(w, width, t)} x2={x(w, width, t)} y1="16" y2={height} class={midnight ? 'day' : ''} />
            <text x={x(w, width, t) + 3} y="11">
              {midnight ? day(t, z) : text}
            </text>
          </g>
        )
      })}
      {here >= 0 && here <= width && <line class="now" x1={here} x2={here} y1="0" y2={height} />}
    </g>
  )
}
