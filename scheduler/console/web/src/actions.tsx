// Every action asks first, and for a reason.
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { act, author, locked, me } from './api'

export interface Field {
  name: string
  label: string
  kind?: 'text' | 'area' | 'check' | 'time'
  hint?: string
  value?: string
}

export interface Action {
  title: string
  /** What will happen. */
  text: ComponentChildren
  /** The word on the button. */
  verb: string
  danger?: boolean
  fields?: Field[]
  /** Does it; what it returns is shown. Items that failed are thrown. */
  run: (reason: string, values: Record<string, string>, progress: (text: string) => void) => Promise<ComponentChildren>
  done?: () => void
}

const asked = signal<Action | null>(null)
/** What the last action did. */
export const said = signal<{ text: ComponentChildren; bad: boolean } | null>(null)

locked.subscribe((yes) => {
  if (yes) asked.value = null
})

export const ask = (a: Action) => {
  asked.value = a
}

/** Whether the role allows actions. The API refuses them anyway. */
export const may = () => me.value?.role === 'operator'

/** A button of an action; none for a viewer. */
export function Do({ action, children, danger }: { action: () => Action; children: string; danger?: boolean }) {
  if (!may()) return null
  return (
    <button type="button" class={danger ? 'danger' : ''} onClick={() => ask(action())}>
      {children}…
    </button>
  )
}

/** One request as an action's run. */
export const post = (path: string, body: (reason: string, values: Record<string, string>) => object | undefined, words: (value: unknown) => ComponentChildren) =>
  async (reason: string, values: Record<string, string>) => {
    const { value, warning } = await act(path, body(reason, values), reason)
    return [words(value), warning && ' ' + warning]
  }

export function ActionDialog() {
  const a = asked.value
  return a && <Asking action={a} key={a.title} />
}

function Asking({ action: a }: { action: Action }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [error, setError] = useState('')
  const [busy, setBusy] = useState('')
  useEffect(() => dialog.current?.showModal(), [])
  const submit = async (e: SubmitEvent) => {
    e.preventDefault()
    const form = new FormData(e.currentTarget as HTMLFormElement)
    const values = Object.fromEntries([...form].map(([k, v]) => [k, String(v)]))
    setBusy('…')
    setError('')
    try {
      const text = await a.run((values.reason ?? '').trim(), values, setBusy)
      said.value = { text: text || `${a.title}: done.`, bad: false }
      dialog.current?.close()
      a.done?.()
    } catch (e) {
      setError((e as Error).message)
    }
    setBusy('')
  }
  return (
    <dialog ref={dialog} aria-labelledby="asking" onClose={() => (asked.value = null)}>
      <form onSubmit={submit}>
        <h2 id="asking">{a.title}</h2>
        <div class="text">{a.text}</div>
        {a.fields?.map((f) => (
          <Input key={f.name} field={f} />
        ))}
        <Because focus />
        {error && (
          <p class="note bad" role="alert">
            {error}
          </p>
        )}
        <div class="buttons">
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button class={a.danger ? 'danger strong' : 'strong'} disabled={busy !== ''}>
            {busy && busy !== '…' ? busy : a.verb}
          </button>
        </div>
      </form>
    </dialog>
  )
}

/** The inputs for the audit: who, where nobody needs to prove it, and why. */
export function Because({ focus }: { focus?: boolean }) {
  return (
    <>
      {me.value?.open && (
        <label>
          Your name <small>for the audit</small>
          <input name="author" value={author.value} autoComplete="name" onInput={(e) => (author.value = e.currentTarget.value)} />
        </label>
      )}
      <label>
        Reason <small>for the audit, and for whoever wonders</small>
        <input name="reason" required maxLength={500} autoComplete="off" autofocus={focus} pattern=".*\S.*" />
      </label>
    </>
  )
}

function Input({ field: f }: { field: Field }) {
  if (f.kind === 'check')
    return (
      <label class="check">
        <input type="checkbox" name={f.name} value="yes" /> {f.label} {f.hint && <small>{f.hint}</small>}
      </label>
    )
  return (
    <label>
      {f.label} {f.hint && <small>{f.hint}</small>}
      {f.kind === 'area' ? (
        <textarea name={f.name} rows={3} spellcheck={false}>
          {f.value ?? ''}
        </textarea>
      ) : f.kind === 'time' ? (
        <input name={f.name} type="datetime-local" step="1" />
      ) : (
        <input name={f.name} defaultValue={f.value ?? ''} autoComplete="off" />
      )}
    </label>
  )
}

/** A time of a field, which is in the browser's zone, as the API wants it; undefined for none. */
export const instant = (text: string | undefined) => (text ? new Date(text).toISOString() : undefined)

export function Said() {
  const s = said.value
  useEffect(() => {
    if (!s || s.bad) return
    const timer = setTimeout(() => (said.value = null), 8000)
    return () => clearTimeout(timer)
  }, [s])
  return (
    <div class="said" role="status">
      {s && (
        <p class={`note ${s.bad ? 'bad' : 'good'}`}>
          <span>{s.text}</span>
          <button type="button" class="quiet" onClick={() => (said.value = null)} aria-label="dismiss">
            ×
          </button>
        </p>
      )}
    </div>
  )
}
