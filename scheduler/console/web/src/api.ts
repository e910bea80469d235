// Requests to the API, which is below the page's own folder: so the console works under any base path.
import { batch, signal } from '@preact/signals'
import type { FaultView, Me, ProblemDetails } from './types'

export const base = new URL('.', document.baseURI)

export class ApiError extends Error {
  constructor(readonly status: number, readonly code: string, detail: string, readonly faults: FaultView[] = []) {
    super(detail)
  }
}

/** Who I am to the API; null before the first answer. */
export const me = signal<Me | null>(null)
/** The API wants a token or a name and a password. */
export const locked = signal(false)
/** Why it wants them again; '' when none were sent before. */
export const refusal = signal('')
/** The code of the refusal of a request that reads much while others of its kind are answered. The same request may succeed soon. */
export const tooMany = 'too_many'
/** Why the node cannot be reached, '' while it answers. */
export const down = signal('')

const tokenKey = 'escapement ' + base.pathname
let authorization = read(sessionStorage, tokenKey) // "Bearer ..." or "Basic ..."; the API has accepted it once

export function read(from: Storage, key: string): string {
  try {
    return from.getItem(key) ?? ''
  } catch {
    return '' // storage is switched off
  }
}

export function write(to: Storage, key: string, value: string) {
  try {
    to.setItem(key, value)
  } catch {
    // storage is switched off: it is forgotten with the page
  }
}

/** Whether this tab has signed in, and can sign out. */
export const signedIn = () => authorization !== ''

/** Asks the API who this is, "Bearer ..." or "Basic ...", and sends it with all requests from now on. It throws when the API does not know it. */
export async function signIn(value: string) {
  const r = await request('me', {}, value)
  me.value = (await r.json()) as Me
  authorization = value
  write(sessionStorage, tokenKey, value)
  locked.value = false
}

/** Forgets who this is, and asks for another sign-in. */
export function signOut(why = '') {
  authorization = ''
  write(sessionStorage, tokenKey, '')
  batch(() => {
    me.value = null
    refusal.value = why
    locked.value = true
  })
}

/** The UTF-8 bytes of a text, as the characters of a header. */
export const bytes = (text: string) => Array.from(new TextEncoder().encode(text), (b) => String.fromCharCode(b)).join('')

export async function request(path: string, init: RequestInit = {}, as = authorization): Promise<Response> {
  const headers = new Headers(init.headers)
  if (as) headers.set('Authorization', as)
  let response: Response
  try {
    response = await fetch(new URL('api/v1/' + path, base), { ...init, headers })
  } catch (e) {
    if ((e as Error).name !== 'AbortError') down.value = 'The node does not answer.'
    throw e
  }
  if (response.ok) {
    down.value = ''
    return response
  }
  const p = (await response.json().catch(() => ({}))) as Partial<ProblemDetails>
  if (response.status === 401 && as === authorization && !locked.value) signOut(as && `The ${as.startsWith('Basic') ? 'password' : 'token'} is not accepted any more.`)
  down.value = response.status === 503 && p.code !== tooMany ? (p.detail ?? 'The node does not answer.') : ''
  throw new ApiError(response.status, p.code ?? '', p.detail ?? response.statusText, p.faults)
}

/** JSON.parse, but whole numbers that it would round stay as they are written, where the browser knows how; they are shown and sent so. */
export function parse(text: string): unknown {
  const { rawJSON } = JSON as { rawJSON?: (source: string) => unknown }
  if (!rawJSON || !/(^|[:[,])\s*-?\d{16}/.test(text)) return JSON.parse(text)
  const keep = (_: string, v: unknown, c?: { source: string }) => (typeof v === 'number' && c && Number.isInteger(v) && !Number.isSafeInteger(v) ? rawJSON(c.source) : v)
  return JSON.parse(text, keep as (k: string, v: unknown) => unknown)
}

export interface Page<T> {
  items: T
  next: string // after of the next page, '' on the last one
  lacks: string
}

const header = (r: Response, name: string) => decodeURIComponent((r.headers.get(name) ?? '').replaceAll('+', ' '))

export async function get<T>(path: string, signal?: AbortSignal): Promise<Page<T>> {
  const r = await request(path, { signal })
  return { items: parse(await r.text()) as T, next: header(r, 'Escapement-Next'), lacks: header(r, 'Escapement-Incomplete') }
}

export async function getText(path: string, signal?: AbortSignal): Promise<string> {
  return (await request(path, { signal })).text()
}

const authorKey = 'escapement author'
export const author = signal(read(localStorage, authorKey))

/** Does something, with a reason for the audit. The body is a text where JSON.stringify would change its numbers. It returns what the API answered, and what it warned of. */
export async function act(path: string, body: object | string | undefined, reason: string, method = 'POST'): Promise<{ value: unknown; warning: string }> {
  const headers: Record<string, string> = { 'Escapement-Via': 'console', 'Escapement-Reason': bytes(reason) }
  if (me.value?.open && author.value) {
    headers['Escapement-Author'] = bytes(author.value)
    write(localStorage, authorKey, author.value)
  }
  if (body) headers['Content-Type'] = 'application/json'
  const r = await request(path, { method, headers, body: typeof body === 'object' ? JSON.stringify(body) : body })
  const text = await r.text()
  return { value: text ? JSON.parse(text) : undefined, warning: header(r, 'Escapement-Warning') }
}

export const segment = (name: string) => encodeURIComponent(name)

export function query(values: Record<string, string | number | string[] | undefined>): string {
  const q = new URLSearchParams()
  for (const [k, v] of Object.entries(values)) {
    if (Array.isArray(v)) v.forEach((one) => q.append(k, one))
    else if (v !== undefined && v !== '') q.set(k, String(v))
  }
  const text = q.toString()
  return text && '?' + text
}
