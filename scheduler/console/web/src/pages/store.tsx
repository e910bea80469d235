import { useEffect, useRef, useState } from 'preact/hooks'
import { Because, may, said } from '../actions'
import { act, ApiError, get, me, query, segment } from '../api'
import { Preview, type Asked } from '../preview'
import { href } from '../router'
import { full, zoneFor } from '../time'
import type { FaultView, StoredJob } from '../types'
import { bodyOf, differing, fields, readStored, valuesOf, type Stored, type Values } from '../stored'
import { Fields } from '../storefields'
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
    const target = v.name!.trim()
    try {
      const { warning } = await act(`jobs/${segment(target)}${base ? query({ was: base.doc.version ?? '' }) : '?new=true'}`, body, v.reason!.trim(), 'PUT')
      said.value = { text: `${target} is stored. ${warning}`, bad: false }
    } catch (e) {
      await refused(e as Error, target)
      return setBusy(false)
    }
    await known(target)
    if (form.current) location.hash = href('jobs', target) // else the page was left meanwhile
  }
  const refused = async (e: Error, target: string) => {
    const faults = e instanceof ApiError ? e.faults : []
    const conflict = e instanceof ApiError && e.status === 409 && faults.length === 0
    const there = conflict ? await readStored(target).catch((e) => (name && e instanceof ApiError && e.status === 404 ? ('none' as const) : null)) : null
    if (there && (there === 'none' || there.doc.version !== base?.doc.version)) setTheirs(there)
    else setError(faults.length ? '' : e.message)
    refuse(faults)
  }
  return (
    <form class="store" ref={form} onSubmit={submit} onInput={input} key={begun.doc.version}>
      <div class="two">
        <Fields name={name} begun={begun.values} named={values.handler ?? ''} wrong={wrong} />
        <Preview asked={askedOf(values)} after={split(values.after)} tell={setTyped} />
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

/** What the preview is asked for. */
function askedOf(values: Values): Asked {
  const more = soft(values.more)
  return {
    name: values.name?.trim() ?? '', schedule: values.schedule?.trim() ?? '', time_zone: values.time_zone?.trim() ?? '', except: split(values.except), only: split(values.only),
    start_at: more.start_at, end_at: more.end_at, jitter: more.jitter,
  }
}

/** What is typed as more settings, as far as it is JSON. */
function soft(text: string | undefined): Partial<StoredJob> {
  try {
    return (JSON.parse(text ?? '') as Partial<StoredJob> | null) ?? {}
  } catch {
    return {}
  }
}

/** Waits until a node has taken a stored job, so that its page has something to show: 4 s at most, whatever the API answers. */
async function known(name: string) {
  const signal = AbortSignal.timeout(4000)
  while (!signal.aborted && !(await get(`jobs/${segment(name)}`, signal).then(() => true, () => false))) await new Promise((done) => setTimeout(done, 250))
}
