import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { ApiError } from './api'
import { href } from './router'
import { duration, full, now, relative, short, zoneFor } from './time'
import type { EndView, ProgressView, RunView } from './types'
import { bad, endTitle, followed, label, ran, tone, why } from './words'

type Text = ComponentChildren

// Shapes of 12 by 12, so that no state is told by its colour alone.
const shapes: Record<string, JSX.Element> = {
  succeeded: <path d="M2 6.5 5 9.5 10 3" class="line" />,
  failed: <path d="M2.5 2.5l7 7m0-7l-7 7" class="line" />,
  timed_out: <path d="M2.5 1.5h7L6 6l3.5 4.5h-7L6 6z" class="fill" />,
  abandoned: <path d="M6 1 11 10.5H1z" class="fill" />,
  lost: <path d="M6 1l5 5-5 5-5-5z" class="line" />,
  cancelled: <path d="M6 1.5a4.5 4.5 0 1 0 .01 0M3 9l6-6" class="line" />,
  running: <path d="M3 1.5v9l7.5-4.5z" class="fill" />,
  pending: <circle cx="6" cy="6" r="4" class="line dotted" />,
  skipped: <path d="M1.5 6h9" class="line" />,
  missed: <path d="M6 1.5v5.5M6 9.4v1" class="line" />,
  paused: <path d="M4 2v8M8 2v8" class="line" />,
  superseded: <path d="M2 2.5 5.5 6 2 9.5M6.5 2.5 10 6l-3.5 3.5" class="line" />,
  active: <circle cx="6" cy="6" r="4" class="fill" />,
  standby: <circle cx="6" cy="6" r="4" class="line" />,
  draining: <path d="M6 1.5v7.5M2.5 6 6 9.5 9.5 6" class="line" />,
  gone: <path d="M2.5 2.5l7 7m0-7l-7 7" class="line" />,
  late: <path d="M6 1.5v5.5M6 9.4v1" class="line" />,
}
shapes.promoting = shapes.superseded!
shapes.error = shapes.failed!
shapes.warning = shapes.abandoned!
shapes.info = shapes.standby!

export function Shape({ of }: { of: string }) {
  return (
    <svg class={`shape ${tone(of)}`} width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">
      {shapes[of] ?? shapes.standby}
    </svg>
  )
}

/** A state in a word and a shape. */
export function State({ of, note }: { of: string; note?: string }) {
  return (
    <span class={`state ${tone(of)}`} title={note}>
      <Shape of={of} />
      {label(of)}
    </span>
  )
}

/** A time, with the other ways to say it on hover. */
export function Time({ at, tz, rel }: { at: string | null | undefined; tz?: string; rel?: boolean }) {
  if (!at) return <span class="none">–</span>
  const ms = Date.parse(at)
  const z = zoneFor(tz)
  const title = rel ? full(ms, z) : `${full(ms, z)}, ${relative(ms)}`
  return (
    <time dateTime={at} title={title}>
      {rel ? relative(ms) : short(ms, z)}
    </time>
  )
}

const height = (outcome: string) => (outcome === 'missed' ? 10 : ran(outcome) ? 18 : 4)

/** How the latest ticks ended, the newest on the right: full bars ran, short ones did not, and bars with a gap went wrong, amber where another attempt followed. */
export function Strip({ ends, most = 20 }: { ends: EndView[] | undefined; most?: number }) {
  const shown = (ends ?? []).slice(-most)
  const again = followed(shown)
  const counts = new Map<string, number>()
  for (const e of shown) counts.set(e.outcome, (counts.get(e.outcome) ?? 0) + 1)
  const text = shown.length ? [...counts].map(([o, n]) => `${n} ${label(o)}`).join(', ') : 'no ticks yet'
  return (
    <svg class="strip" width={most * 6} height="20" role="img" aria-label={`last ticks: ${text}`}>
      {shown.map((e, i) => {
        const h = height(e.outcome)
        const x = (most - shown.length + i) * 6
        return (
          <g class={again.has(e) ? 'warn' : tone(e.outcome)} key={e.run || e.tick}>
            <title>{endTitle(e)}</title>
            {bad.includes(e.outcome) ? (
              <>
                <rect x={x} y="1" width="4.5" height="11" />
                <rect x={x} y="15" width="4.5" height="4" />
              </>
            ) : (
              <rect x={x} y={19 - h} width="4.5" height={h} />
            )}
          </g>
        )
      })}
    </svg>
  )
}

export function Failure({ error }: { error?: Error }) {
  if (!error) return null
  const known = error instanceof ApiError
  return (
    <p class="note bad" role="alert">
      <Shape of="failed" /> {known ? error.message : 'The node does not answer. The next look comes by itself.'}
    </p>
  )
}

export function Lacks({ what }: { what?: string }) {
  return what ? <p class="note warn">This list is not whole: {what}</p> : null
}

/** What to do where nothing is to be seen. */
export function Empty({ children, type }: { children: Text; type?: string }) {
  return (
    <div class="empty">
      <p>{children}</p>
      {type && <Command text={type} />}
    </div>
  )
}

/** A command line to copy. */
export function Command({ text }: { text: string }) {
  const copied = useRef<HTMLButtonElement>(null)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      if (copied.current) copied.current.textContent = 'copied'
    } catch {
      if (copied.current) copied.current.textContent = 'select it'
    }
  }
  return (
    <p class="command">
      <code>{text}</code>
      <button type="button" class="quiet" ref={copied} onClick={copy} aria-label={`copy the command ${text}`}>
        copy
      </button>
    </p>
  )
}

/** How long something goes on, while it does. */
export function Elapsed({ since }: { since: string }) {
  return <>{duration(Math.max(0, Math.round((now.value - Date.parse(since)) / 1000)) * 1000)}</>
}

/** How far a run is, as far as it has said so. */
export function Progress({ of: p }: { of: ProgressView | null | undefined }) {
  if (!p) return null
  const part = p.total > 0 && `${Math.floor((100 * p.done) / p.total)} %`
  return (
    <span class="progress">
      {part && <progress max={p.total} value={p.done} aria-label={`progress, ${part}`} />} {p.done}
      {p.total > 0 && ` of ${p.total}, ${part}`}
      {p.note && `, ${p.note}`}
      {p.end && <span class="dim">, ends about <Time at={p.end} rel /></span>}
    </span>
  )
}

export function JobLinks({ names }: { names: string[] | null | undefined }) {
  return <>{names?.map((n, i) => <span key={n}>{i > 0 && ', '}<JobLink name={n} /></span>)}</>
}

export function JobLink({ name }: { name: string }) {
  return (
    <a href={href('jobs', name)} class="name">
      {name}
    </a>
  )
}

export function Section({ title, children, side, id }: { title: string; children: Text; side?: Text; id?: string }) {
  return (
    <section aria-label={title} id={id}>
      <header class="row">
        <h2>{title}</h2>
        {side}
      </header>
      {children}
    </section>
  )
}

let searching = false

/** Opens a page for its search, which then takes the focus. */
export function openSearch(place: string) {
  searching = true
  location.hash = place
}

/** The page's heading, which takes the focus when the page is opened. */
export function Title({ children, side }: { children: Text; side?: Text }) {
  const h = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    const search = searching && document.querySelector<HTMLInputElement>('main input[type=search]')
    searching = false
    if (search) search.focus()
    else if (document.activeElement === document.body || document.activeElement?.closest('nav, main')) h.current?.focus({ preventScroll: true })
  }, [])
  return (
    <header class="title">
      <h1 ref={h} tabIndex={-1}>
        {children}
      </h1>
      <div class="actions">{side}</div>
    </header>
  )
}

/** Things by their names; those that are false do not apply. */
export function Facts({ of }: { of: [string, Text][] }) {
  return (
    <dl class="facts">
      {of.map(([k, v]) =>
        v === false ? null : (
          <div key={k}>
            <dt>{k}</dt>
            <dd>{v === '' || v === null || v === undefined ? <span class="none">–</span> : v}</dd>
          </div>
        ),
      )}
    </dl>
  )
}

/** Why it ended so, in two lines at most. */
export function Why({ of }: { of: RunView }) {
  const text = why(of)
  return (
    <div class="why" title={text}>
      {text}
    </div>
  )
}

/** A table that scrolls sideways by itself on a narrow screen. */
export function Table({ label, head, children }: { label: string; head: string[]; children: Text }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {head.map((h) => (
              <th scope="col" key={h} class={h.endsWith('#') ? 'num' : ''}>
                {h.replace('#', '')}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}
