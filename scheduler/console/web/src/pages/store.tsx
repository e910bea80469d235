import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { Because, may, said } from '../actions'
import { act, ApiError, get, me, query, segment } from '../api'
import { Preview, type Asked } from '../preview'
import { never, useGet } from '../query'
import { href } from '../router'
import { full, zoneFor } from '../time'
import type { FaultView, HandlerView, JobView, StoredView } from '../types'
import { bodyOf, differing, fields, readStored, valuesOf, type Stored, type Values } from '../stored'
import { Failure, Title } from '../ui'
import { label } from '../words'

const fresh = (): Stored => ({ doc: {}, values: valuesOf({ time_zone: 'UTC' }) })
const split = (text: string | undefined) => (text ?? '').split(/[\s,]+/).filter(Boolean)

/** The page to store a job, or to change one that is stored. */
export function Store({ name }: { name: string }) {
  const [job, set] = useState<Stored | null>(name ? null : fresh())
  const [error, setError] = useState<Error>()
  useEffect(() => {
    const abort = new AbortController()
    if (name) readStored(name, abort.signal).then(set, (e) => abort.signal.aborted || setError(e as Error))
    return () => abort.abort()
  }, [])
  return (
    <>
      <Title>{name ? `Change ${name}` : 'New stored job'}</Title>
      {me.value && !may() ? <p class="note idle">Only operators store jobs.</p> : <Failure error={error} />}
      {may() && job && <Form name={name} first={job} />}
    </>
  )
}

/** The field of the form at which a fault is shown. */
function placeOf(f: FaultView): string {
  const base = f.field === 'retry.max' ? 'retries' : f.field.replace(/[.[].*/, '')
  return fields.includes(base) ? base : 'more'
}

function byPlace(list: FaultView[]): Record<string, string> {
  const all: Record<string, string> = {}
  for (const f of list) {
    const at = placeOf(f)
    const text = f.field === at ? f.text : `${f.field}: ${f.text}`
    all[at] = all[at] ? `${all[at]}; ${text}` : text
  }
  return all
}

/** What stands in the ledger now, where that is not what the form began with. */
type Theirs = Stored | 'none'

function Form({ name, first }: { name: string; first: Stored }) {
  const [base, setBase] = useState<Stored | null>(name ? first : null) // what is replaced; null: nothing
  const [begun, begin] = useState(first) // what the inputs began with
  const [values, setValues] = useState<Values>(first.values)
  const [faults, setFaults] = useState<FaultView[]>([])
  const [typed, setTyped] = useState<FaultView[]>([]) // of the preview
  const [error, setError] = useState('')
  const [theirs, setTheirs] = useState<Theirs | null>(null)
  const [busy, setBusy] = useState(false)
  const form = useRef<HTMLFormElement>(null)
  const handlers = useGet<HandlerView[]>('handlers', { when: never })
  const wrong = byPlace([...typed, ...faults.filter((f) => !typed.some((t) => t.field === f.field))])

  const read = (): Values => Object.fromEntries([...new FormData(form.current!)].map(([k, v]) => [k, String(v)]))
  const input = (e: Event) => {
    const { name: at } = e.target as HTMLInputElement
    setFaults((list) => list.filter((f) => placeOf(f) !== at))
    setValues(name ? { ...read(), name } : read())
  }
  const refuse = (list: FaultView[]) => {
    setFaults(list)
    requestAnimationFrame(() => form.current?.querySelector<HTMLElement>('[aria-invalid]')?.focus())
  }
  const submit = async (e: SubmitEvent) => {
    e.preventDefault()
    const v: Values = name ? { ...read(), name } : read()
    const { body, faults: mine } = bodyOf(v)
    setError('')
    setTheirs(null)
    if (mine.length > 0) return refuse(mine)
    setBusy(true)
    try {
      const target = v.name!.trim()
      const { warning } = await act(`jobs/${segment(target)}${base ? query({ was: base.doc.version ?? '' }) : '?new=true'}`, body, v.reason!.trim(), 'PUT')
      await known(target)
      said.value = { text: `${target} is stored. ${warning}`, bad: false }
      location.hash = href('jobs', target)
    } catch (e) {
      const refused = e instanceof ApiError && e.status === 409 && e.faults.length === 0
      const there = refused ? await readStored(v.name!.trim()).catch((e) => (name && e instanceof ApiError && e.status === 404 ? ('none' as const) : null)) : null
      if (there && there !== 'none' && there.doc.version === base?.doc.version) setError((e as Error).message)
      else if (there) setTheirs(there)
      else setError(e instanceof ApiError && e.faults.length ? '' : (e as Error).message)
      refuse(e instanceof ApiError ? e.faults : [])
    }
    setBusy(false)
  }
  const more = soft(values.more)
  const asked: Asked = {
    name: values.name?.trim() ?? '', schedule: values.schedule?.trim() ?? '', time_zone: values.time_zone?.trim() ?? '', except: split(values.except), only: split(values.only),
    start_at: more.start_at ?? undefined, end_at: more.end_at ?? undefined, jitter_ms: more.jitter_ms,
  }
  const zones = useMemo(() => <datalist id="zones">{Intl.supportedValuesOf('timeZone').map((z) => <option key={z} value={z} />)}</datalist>, [])
  const after = split(values.after)
  const declared = (handlers.items ?? []).map((h) => h.name)
  const named = values.handler ?? ''
  const shape = handlers.items?.find((h) => h.name === named)?.shape
  const text = (key: string, words: ComponentChildren, o: object = {}) => (
    <Part key={key} name={key} label={words} fault={wrong[key]}>
      {(is) => <input name={key} defaultValue={begun.values[key]} autoComplete="off" spellcheck={false} {...is} {...o} />}
    </Part>
  )
  const area = (key: string, words: ComponentChildren) => (
    <Part name={key} label={words} fault={wrong[key]}>
      {(is) => (
        <textarea name={key} rows={Math.min(10, Math.max(3, begun.values[key]!.split('\n').length))} spellcheck={false} defaultValue={begun.values[key]} {...is} />
      )}
    </Part>
  )
  const choice = (key: string, words: ComponentChildren, of: string[], none = 'default') => (
    <Part name={key} label={words} fault={wrong[key]}>
      {(is) => (
        <select name={key} required={none === ''} {...is}>
          {of.map((w) => (
            <option key={w} value={w} selected={w === begun.values[key]}>
              {w || none}
            </option>
          ))}
        </select>
      )}
    </Part>
  )
  return (
    <form class="store" ref={form} onSubmit={submit} onInput={input} key={begun.doc.version}>
      <div class="two">
        <fieldset>
          <legend>What</legend>
          {!name && text('name', 'Name', { required: true, maxLength: 128, pattern: '[a-zA-Z0-9][a-zA-Z0-9._:\\/\\-]*', title: '1 to 128 letters, digits and . _ : / -, the first a letter or digit' })}
          {choice('handler', <>Handler <small>that its runs call; nodes declare them</small></>, [...new Set([begun.values.handler!, ...declared])], '')}
          {handlers.items?.length === 0 && <p class="note warn">No node has declared a handler yet; handlers in config.yaml, or Registry.Handle, make some.</p>}
          {area('payload', <>Payload <small>JSON that each run gets{shape ? `, such as ${like(shape)}` : ''}</small></>)}
        </fieldset>
        <fieldset>
          <legend>How</legend>
          <div class="pair">
            {text('timeout', <>Timeout <small>such as 10m; empty: none</small></>)}
            {text('retries', <>Retries <small>of a try that fails</small></>, { inputMode: 'numeric', type: 'number', min: 0, max: 100 })}
            {choice('overlap', 'Overlap', ['', 'skip', 'queue', 'replace', 'allow'])}
            {choice('catch_up', 'Catch up', ['', 'latest', 'all', 'none'])}
          </div>
          {area('more', <>More settings <small>JSON, as PUT api/v1/jobs takes them</small></>)}
        </fieldset>
        <fieldset>
          <legend>When</legend>
          {text('schedule', <>Schedule <small>such as 30 2 * * * or @every 90s</small></>)}
          {text('time_zone', 'Time zone', { list: 'zones' })}
          {zones}
          {text('after', <>Or after jobs <small>in place of a schedule</small></>)}
          {choice('when', <>… when they <small>all</small></>, ['', 'succeeded', 'failed', 'any'])}
          {text('except', <>Except on <small>dates, and ranges such as 2026-12-24..2027-01-02</small></>)}
          {text('only', <>Only on <small>dates and ranges</small></>)}
        </fieldset>
        <Preview asked={asked} after={after} tell={setTyped} />
      </div>
      {theirs && <Conflict theirs={theirs} was={base} name={values.name?.trim() || name} keep={() => (setBase(theirs === 'none' ? null : theirs), setTheirs(null))} take={() => theirs !== 'none' && (setBase(theirs), begin(theirs), setValues(theirs.values), setTheirs(null))} />}
      {error && (
        <p class="note bad" role="alert">
          {error}
        </p>
      )}
      {faults.length > 0 && (
        <p class="note bad" role="alert">
          Nothing is stored: see {[...new Set(faults.map(placeOf))].map(label).join(', ')}.
        </p>
      )}
      <fieldset class="because">
        <Because />
        <div class="buttons">
          <button class="strong" disabled={busy}>
            {busy ? '…' : 'Store'}
          </button>
          <a href={name ? href('jobs', name) : href('jobs')}>Cancel</a>
        </div>
      </fieldset>
    </form>
  )
}

/** An input with its label, and below it what is wrong. */
function Part({ name, label, fault, children }: { name: string; label: ComponentChildren; fault?: string; children: (is: object) => ComponentChildren }) {
  return (
    <div>
      <label>
        {label}
        {children(fault ? { 'aria-invalid': true, 'aria-describedby': 'fault-' + name } : {})}
      </label>
      {fault && (
        <p class="bad" id={'fault-' + name}>
          {fault}
        </p>
      )}
    </div>
  )
}

function Conflict(p: { theirs: Theirs; was: Stored | null; name: string; keep: () => void; take: () => void }) {
  const there = p.theirs === 'none' ? null : p.theirs.doc
  const changed = there && p.was ? differing(p.was.doc, there) : []
  return (
    <div class="note warn" role="alert">
      <p>
        {!there ? 'The job has been deleted meanwhile.' : p.was ? `Somebody has changed the job meanwhile: ${changed.join(', ') || 'no setting differs'}` : `A job ${p.name} is stored already`}
        {there?.version && `, ${full(Date.parse(there.version), zoneFor())}`}. Nothing is stored, and what is typed here is kept.
      </p>
      <p class="buttons">
        <button type="button" onClick={p.keep}>
          {there ? 'Let mine replace it' : 'Let mine be a new job'}
        </button>
        {there && p.was && (
          <button type="button" onClick={p.take}>
            Take theirs
          </button>
        )}
        {there && !p.was && <a href={href('store', p.name)}>Change that one</a>}
      </p>
    </div>
  )
}

/** What is typed as more settings, as far as it is JSON. */
function soft(text: string | undefined): Partial<StoredView> {
  try {
    return (JSON.parse(text ?? '') as Partial<StoredView> | null) ?? {}
  } catch {
    return {}
  }
}

/** A shape of payloads in a few words. */
function like(shape: string): string {
  try {
    const s = JSON.parse(shape) as { fields?: Record<string, unknown> } | string
    return typeof s === 'object' && s.fields ? `{${Object.entries(s.fields).map(([k, v]) => `"${k}": ${typeof v === 'string' ? v : '…'}`).join(', ')}}` : typeof s === 'string' ? s : shape
  } catch {
    return shape
  }
}

/** Waits until a node has taken a stored job, so that its page has something to show; for some seconds at most. */
async function known(name: string) {
  for (const end = Date.now() + 4000; Date.now() < end; await new Promise((done) => setTimeout(done, 250))) {
    const { items } = await get<JobView[]>('jobs' + query({ q: name, after: name.slice(0, -1), limit: 1 }))
    if (items[0]?.name === name) return
  }
}
