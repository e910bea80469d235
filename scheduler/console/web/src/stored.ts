// A stored job as the texts of a form, and back.
import { getText, query } from './api'
import type { FaultView, StoredView } from './types'

/** The texts of the form by field; more is JSON of all other settings. */
export type Values = Record<string, string>

/** A stored job as the form began with it. */
export interface Stored {
  doc: Partial<StoredView>
  values: Values
}

const plain = ['name', 'handler', 'schedule', 'time_zone', 'when', 'overlap', 'catch_up'] as const
const lists = ['after', 'except', 'only'] as const

/** The fields of the form, with those that have a place of their own. */
export const fields: string[] = [...plain, ...lists, 'payload', 'timeout', 'retries', 'more']

/** Where the JSON value ends that begins at an index. */
function endOf(text: string, at: number): number {
  let depth = 0
  for (let quoted = false; at < text.length; at++) {
    const c = text[at]!
    if (quoted) {
      if (c === '\\') at++
      else if (c === '"') quoted = false
    } else if (c === '"') quoted = true
    else if ('{['.includes(c)) depth++
    else if (depth === 0 && ',}]'.includes(c)) break
    else if ('}]'.includes(c)) depth--
  }
  return at
}

/** The payload as it was stored: JSON.parse would round large numbers. The name and the handler before it have no quotes. */
function payloadOf(text: string, payload: unknown): string {
  if (payload === undefined) return ''
  const at = text.indexOf('"payload":') + 10
  const raw = text.slice(at, endOf(text, at))
  return JSON.stringify(payload) === raw ? JSON.stringify(payload, null, 2) : raw
}

const units: [string, number][] = [['h', 3600e3], ['m', 60e3], ['s', 1e3], ['ms', 1]]

/** 1h30m */
export function durationText(ms: number): string {
  let text = ''
  for (const [unit, size] of units) {
    if (ms >= size) text += Math.floor(ms / size) + unit
    ms %= size
  }
  return text
}

/** The milliseconds of a text such as 1h30m; NaN when it is none. */
export function durationOf(text: string): number {
  if (!/^(\d+(ms|[smh]))+$/.test(text)) return NaN
  return [...text.matchAll(/(\d+)([a-z]+)/g)].reduce((sum, [, n, unit]) => sum + Number(n) * units.find(([u]) => u === unit)![1], 0)
}

/** A stored job as the form shows it. text is the job as the API has written it. */
export function valuesOf(doc: Partial<StoredView>, text = ''): Values {
  const { payload, timeout_ms, retry, version: _, ...more } = doc
  const values: Values = { payload: payloadOf(text, payload), timeout: durationText(timeout_ms ?? 0), retries: retry ? String(retry.max) : '' }
  for (const k of plain) values[k] = more[k] ?? ''
  for (const k of lists) values[k] = more[k]?.join(', ') ?? ''
  for (const k of [...plain, ...lists]) delete more[k]
  const { max: __, ...rest } = retry ?? {}
  const others = { ...more, ...(Object.keys(rest).length && { retry: rest }) }
  values.more = Object.keys(others).length ? JSON.stringify(others, null, 2) : ''
  return values
}

/** The texts as the body of a request, or what is wrong with them. */
export function bodyOf(v: Values): { body: string; faults: FaultView[] } {
  const faults: FaultView[] = []
  const parsed = (field: string, hint: string) => {
    try {
      return v[field]?.trim() ? (JSON.parse(v[field]) as unknown) : undefined
    } catch (e) {
      faults.push({ field, text: `is not JSON; ${hint} (${(e as Error).message})` })
    }
  }
  parsed('payload', 'a text needs quotes')
  const more = parsed('more', 'write an object such as {"on_crash": "rerun"}') ?? {}
  if (typeof more !== 'object' || Array.isArray(more)) faults.push({ field: 'more', text: 'is no object; write one such as {"on_crash": "rerun"}' })
  const doc = { ...(more as Partial<StoredView>) }
  for (const k of [...plain, ...lists, 'payload', 'timeout_ms'] as const) if (k in doc) faults.push({ field: 'more', text: `${k} has a field of its own; take it out here` })
  for (const k of plain) if (v[k]?.trim()) doc[k] = v[k].trim()
  for (const k of lists) if (v[k]?.trim()) doc[k] = v[k].split(/[\s,]+/).filter(Boolean)
  const timeout = v.timeout?.trim() ? durationOf(v.timeout.trim()) : 0
  if (Number.isNaN(timeout)) faults.push({ field: 'timeout', text: `${v.timeout} is no duration; write one such as 90s, 10m or 1h30m` })
  if (timeout) doc.timeout_ms = timeout
  if (v.retries?.trim()) doc.retry = { backoff_ms: 0, max_backoff_ms: 0, ...doc.retry, max: Number(v.retries) }
  const rest = JSON.stringify({ schedule: '', ...doc })
  return { body: v.payload?.trim() ? `{"payload":${v.payload},${rest.slice(1)}` : rest, faults }
}

/** Reads a stored job. */
export async function readStored(name: string, signal?: AbortSignal): Promise<Stored> {
  const text = await getText('stored-jobs' + query({ name }), signal)
  const doc = (JSON.parse(text) as StoredView[])[0]!
  return { doc, values: valuesOf(doc, text) }
}

/** The settings in which two stored jobs differ. */
export function differing(a: Partial<StoredView>, b: Partial<StoredView>): string[] {
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]) as Set<keyof StoredView>
  return [...keys].filter((k) => k !== 'version' && JSON.stringify(a[k]) !== JSON.stringify(b[k]))
}
