// A stored job as the texts of a form, and back.
import { getText, query } from './api'
import type { FaultView, StoredJob } from './types'

/** The texts of the form by field; more is JSON of all other settings. */
export type Values = Record<string, string>

/** A stored job as the form began with it. */
export interface Stored {
  doc: Partial<StoredJob>
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

/** The payload as it was stored: JSON.parse would round large numbers. text is the list of one job as the API has written it. */
function payloadOf(text: string, payload: unknown): string {
  if (payload === undefined) return ''
  for (let at = text.indexOf('{') + 1, end; at > 0; at = end + 1) {
    const value = text.indexOf('":', at) + 2 // the name of a setting has no quotes
    if (value < at) break
    end = endOf(text, value)
    const raw = text.slice(value, end)
    if (text.slice(at, value) === '"payload":' && JSON.stringify(payload) !== raw) return raw
  }
  return JSON.stringify(payload, null, 2)
}

/** A stored job as the form shows it. text is the job as the API has written it. */
export function valuesOf(doc: Partial<StoredJob>, text = ''): Values {
  const { payload, timeout, retry, version: _, ...more } = doc
  const values: Values = { payload: payloadOf(text, payload), timeout: timeout ?? '', retries: retry?.max ? String(retry.max) : '' }
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
  const doc = { ...(more as Partial<StoredJob>) }
  for (const k of [...plain, ...lists, 'payload', 'timeout'] as const) if (k in doc) faults.push({ field: 'more', text: `${k} has a field of its own; take it out here` })
  for (const k of [...plain, 'timeout'] as const) if (v[k]?.trim()) doc[k] = v[k].trim() as never // the API judges the words
  for (const k of lists) if (v[k]?.trim()) doc[k] = v[k].split(/[\s,]+/).filter(Boolean)
  if (v.retries?.trim()) doc.retry = { ...doc.retry, max: Number(v.retries) }
  const rest = JSON.stringify({ schedule: '', ...doc })
  return { body: v.payload?.trim() ? `{"payload":${v.payload},${rest.slice(1)}` : rest, faults }
}

/** Reads a stored job. */
export async function readStored(name: string, signal?: AbortSignal): Promise<Stored> {
  const text = await getText('stored-jobs' + query({ name }), signal)
  const doc = (JSON.parse(text) as StoredJob[])[0]!
  return { doc, values: valuesOf(doc, text) }
}

/** The settings in which two stored jobs differ. */
export function differing(a: Partial<StoredJob>, b: Partial<StoredJob>): string[] {
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]) as Set<keyof StoredJob>
  return [...keys].filter((k) => k !== 'version' && JSON.stringify(a[k]) !== JSON.stringify(b[k]))
}
