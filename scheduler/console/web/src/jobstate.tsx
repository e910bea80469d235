// What a job does now, in words.
import { full, now, zoneFor } from './time'
import type { JobView, TickView } from './types'
import { Shape, State } from './ui'
import { meanings } from './words'

/** What a job does now, in a word. */
function stateOf(j: JobView): string {
  if (j.paused) return 'paused'
  if (j.orphan || j.no_node) return 'missed'
  if (j.open) return 'running'
  if (j.next && Date.parse(j.next) < now.peek() - 3000) return 'late'
  return 'ready'
}

const stateWords: Record<string, string> = { missed: 'no node', ready: 'waits' }

export function JobState({ job: j }: { job: JobView }) {
  const s = stateOf(j)
  const note = j.pause ? pauseText(j) : j.no_node || (j.orphan ? 'no living node of its generation holds it' : meanings[s])
  if (!stateWords[s]) return <State of={s} note={note} />
  return (
    <span class={`state ${s === 'ready' ? 'idle' : 'warn'}`} title={note}>
      <Shape of={s === 'ready' ? 'standby' : s} />
      {stateWords[s]}
    </span>
  )
}

export function pauseText(j: JobView): string {
  if (!j.pause) return ''
  const until = j.pause.until ? `until ${full(Date.parse(j.pause.until), zoneFor(j.time_zone))}` : 'until it is resumed'
  return `by ${j.pause.author || 'somebody'}: ${j.pause.reason} (${until})`
}

/** The ticks of a schedule that will run, as far as a pause is known. */
export function planned(j: JobView, ticks: TickView[]): TickView[] {
  if (!j.pause) return ticks
  const until = j.pause.until ? Date.parse(j.pause.until) : Infinity
  return ticks.filter((t) => Date.parse(t.tick) >= until)
}
