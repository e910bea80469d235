// Redis' time, and how times are shown: in a job's own zone, in UTC or in the browser's zone.
import { signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import { read, write } from './api'

/** What to add to this browser's clock for Redis' time, ms. */
export const offset = signal(0)
/** Redis' time, ms, which moves once a second. */
export const now = signal(Date.now())
setInterval(() => {
  if (!document.hidden) now.value = Date.now() + offset.value
}, 1000)

/** Notes Redis' time as an answer had it, which was asked for between two instants of this browser. */
export function synchronize(redis: string, asked: number, answered: number) {
  const by = Date.parse(redis) - (asked + answered) / 2
  // An answer that took long says little: keep the old estimate unless it is clearly wrong.
  if (offset.value === 0 || Math.abs(by - offset.value) > answered - asked) offset.value = Math.round(by)
  now.value = Date.now() + offset.value
}

export type Zone = 'job' | 'UTC' | 'browser'
const key = 'escapement zone'
const stored = read(localStorage, key)
export const zone = signal<Zone>(stored === 'UTC' || stored === 'browser' ? stored : 'job')
zone.subscribe((z) => write(localStorage, key, z))

/** The zone of the job that the page is about; none of pages with many jobs. */
const jobZone = signal<string | undefined>(undefined)

/** Makes a page that of a job with a zone, while it is shown. */
export function useJobZone(tz: string | undefined) {
  useLayoutEffect(() => {
    jobZone.value = tz
    return () => void (jobZone.value = undefined)
  }, [tz])
}

/** The zone in which a time is shown: of a job with a zone, or else of the page. */
export function zoneFor(job = jobZone.value): string | undefined {
  if (zone.value === 'UTC') return 'UTC'
  return zone.value === 'job' && job ? job : undefined
}

/** The name of the zone in which the page shows its times. */
export const zoneName = () => format(zoneFor()).resolvedOptions().timeZone

const formats = new Map<string, Intl.DateTimeFormat>()

function format(tz: string | undefined): Intl.DateTimeFormat {
  let f = formats.get(tz ?? '')
  if (!f) {
    const options: Intl.DateTimeFormatOptions = {
      year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23', timeZoneName: 'short',
    }
    try {
      f = new Intl.DateTimeFormat('en-GB', { ...options, timeZone: tz })
    } catch {
      f = new Intl.DateTimeFormat('en-GB', { ...options, timeZone: 'UTC' }) // a zone that this browser does not know
    }
    formats.set(tz ?? '', f)
  }
  return f
}

const parts = (ms: number, tz: string | undefined): Record<string, string> => Object.fromEntries(format(tz).formatToParts(ms).map((p) => [p.type, p.value]))

/** 2026-11-26 12:03:43 CET */
export function full(ms: number, tz?: string): string {
  const p = parts(ms, tz)
  return `${p.year}-${p.month}-${p.day} ${p.hour}:${p.minute}:${p.second} ${p.timeZoneName}`
}

/** 12:03:43, with the day when that is another one than today. */
export function short(ms: number, tz?: string): string {
  const p = parts(ms, tz)
  const t = parts(now.peek(), tz)
  const day = p.day === t.day && p.month === t.month && p.year === t.year ? '' : p.year === t.year ? `${p.month}-${p.day} ` : `${p.year}-${p.month}-${p.day} `
  return `${day}${p.hour}:${p.minute}:${p.second}`
}

/** 12:03 */
export function clock(ms: number, tz?: string): string {
  const p = parts(ms, tz)
  return `${p.hour}:${p.minute}`
}

export function day(ms: number, tz?: string): string {
  const p = parts(ms, tz)
  return `${p.month}-${p.day}`
}

/** "in 12 s", "3 min ago" */
export function relative(ms: number, at = now.value): string {
  const s = Math.round((ms - at) / 1000)
  const text = span(Math.abs(s) * 1000)
  return s === 0 ? 'now' : s > 0 ? `in ${text}` : `${text} ago`
}

function span(ms: number): string {
  const s = Math.round(ms / 1000)
  if (s < 90) return `${s} s`
  if (s < 90 * 60) return `${Math.round(s / 60)} min`
  if (s < 36 * 3600) return `${Math.round(s / 3600)} h`
  return `${Math.round(s / 86400)} d`
}

/** 850 ms, 2.35 s, 3 min 4 s, 2 h 5 min */
export function duration(ms: number): string {
  if (ms < 0) return '-' + duration(-ms)
  if (ms < 1000) return `${ms} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`
  const s = Math.round(ms / 1000)
  const [a, b, c] = [Math.floor(s / 3600), Math.floor((s % 3600) / 60), s % 60]
  return a ? `${a} h${b ? ` ${b} min` : ''}` : `${b} min${c ? ` ${c} s` : ''}`
}
