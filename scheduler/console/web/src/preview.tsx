// The next ticks of a schedule, while it is typed.
import { useEffect, useState } from 'preact/hooks'
import { ApiError, get, query } from './api'
import { relative } from './time'
import type { ClockChange, FaultView, Preview as Answer, TickView } from './types'
import { JobLinks, Section } from './ui'

const debounce = 300 // ms without a key until the API is asked
const longest = 6000 // characters of a request; servers and proxies take 8 KiB

export interface Asked {
  name: string
  schedule: string
  time_zone: string
  except: string[]
  only: string[]
  start_at?: string
  end_at?: string
  jitter?: string
}

const offset = (local: string) => local.replace(/^.{19}(\.\d+)?/, '').replace('Z', '+00:00')
const wall = (local: string) => local.slice(0, 10) + ' ' + local.slice(11, 23).replace(/[Z+-].*|\.000/, '')
const weekday = (local: string) => new Date(local.slice(0, 10) + 'T00:00Z').toLocaleDateString('en-GB', { weekday: 'short', timeZone: 'UTC' })

/** Asks for the ticks when nothing was typed for a moment, and says what is wrong with the schedule. */
export function Preview({ asked, after, tell }: { asked: Asked; after: string[]; tell: (faults: FaultView[]) => void }) {
  const [answer, set] = useState<{ path: string; is?: Answer; error?: string }>({ path: '' })
  const whole = 'preview' + query({ ...asked, limit: 10 })
  const cut = whole.length > longest
  const path = asked.schedule && after.length === 0 ? (cut ? 'preview' + query({ ...asked, except: [], only: [], limit: 10 }) : whole) : ''
  useEffect(() => {
    if (!path) return tell([])
    const abort = new AbortController()
    const timer = setTimeout(() => {
      get<Answer>(path, abort.signal).then(
        ({ items }) => {
          set({ path, is: items })
          tell(items.faults ?? [])
        },
        (e) => {
          if (abort.signal.aborted) return
          set({ path, error: e instanceof ApiError ? e.message : 'The node does not answer.' })
          tell([])
        },
      )
    }, debounce)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [path])
  const p = answer.is
  const good = p && !p.faults?.length
  return (
    <Section title="Next ticks" side={<small class="dim">{good && path ? p.time_zone : ''}</small>}>
      {after.length > 0 && (
        <p class="dim">
          No schedule: it runs when a tick of <JobLinks names={after} /> has ended.
        </p>
      )}
      {!path && after.length === 0 && <p class="none">Type a schedule.</p>}
      {path && cut && <p class="warn">The days of except and only are too many for the preview: it leaves them out. The job keeps them.</p>}
      {path && answer.error && <p class="note bad">{answer.error}</p>}
      {path && p && !good && <p class="none">None: something is wrong with the schedule.</p>}
      {path && good && (
        <div class={answer.path === path ? 'preview' : 'preview old'}>
          <p role="status">{p.words}.</p>
          {p.resolved !== asked.schedule && /\bH\b/.test(asked.schedule) && (
            <p class="dim">
              Without H: <code>{p.resolved}</code>
              {!asked.name && ', for a job named example'}
            </p>
          )}
          <ol class="ticks" aria-label="next ticks">
            {p.ticks?.map((t, i) => (
              <Tick key={t.tick} tick={t} before={p.ticks![i - 1]} />
            ))}
          </ol>
          {p.ticks?.length === 0 && <p class="warn">No tick is left.</p>}
          {p.clock && <p class="dim">When the clock is set: {p.clock}.</p>}
          {p.changes?.map((c) => (
            <Change key={c.at} change={c} />
          ))}
        </div>
      )}
    </Section>
  )
}

/** A tick in the job's zone and in UTC, with a line before it where the clock was set since the tick before. */
function Tick({ tick: t, before }: { tick: TickView; before?: TickView }) {
  const zone = offset(t.local)
  return (
    <>
      {before && offset(before.local) !== zone && (
        <li class="warn">
          the clock is set: {offset(before.local)} → {zone}
        </li>
      )}
      <li>
        <span class="dim">{weekday(t.local)}</span>
        <time dateTime={t.tick}>{wall(t.local)}</time>
        <span class="dim">{zone}</span>
        {zone !== '+00:00' && <span class="dim">{wall(t.tick).slice(11)} UTC</span>}
        <span class="num">{relative(Date.parse(t.tick))}</span>
        {t.words && <span class="warn">{t.words}</span>}
      </li>
    </>
  )
}

/** What the next change of the clock does. */
function Change({ change: c }: { change: ClockChange }) {
  return (
    <>
      <h3>
        {c.from.slice(0, 10)}: the clock goes from {c.from.slice(11, 16)} to {c.to.slice(11, 16)} <small class="dim">{offset(c.from)} → {offset(c.to)}</small>
      </h3>
      {c.ticks?.length ? (
        <ul class="ticks">
          {c.ticks.map((t) => (
            <Tick key={t.tick} tick={t} />
          ))}
        </ul>
      ) : (
        <p class="dim">No tick is moved or comes twice.</p>
      )}
    </>
  )
}
