// Outcomes and reasons in words.
import type { EndView, RunView } from './types'
import { duration } from './time'

export const outcomes = ['running', 'pending', 'succeeded', 'failed', 'timed_out', 'cancelled', 'lost', 'abandoned', 'skipped', 'missed', 'paused', 'superseded'] as const

/** How much a state asks to be looked at. */
export type Tone = 'good' | 'bad' | 'warn' | 'busy' | 'idle'

const tones: Record<string, Tone> = {
  running: 'busy', pending: 'idle', succeeded: 'good', failed: 'bad', timed_out: 'bad', lost: 'bad', abandoned: 'bad',
  cancelled: 'warn', missed: 'warn', skipped: 'idle', paused: 'idle', superseded: 'idle',
  active: 'good', standby: 'idle', draining: 'warn', gone: 'bad', promoting: 'busy', late: 'warn', error: 'bad', warning: 'warn', info: 'idle',
}

export const tone = (state: string): Tone => tones[state] ?? 'idle'
export const label = (state: string) => state.replaceAll('_', ' ')

/** The outcomes that somebody should look at, the worst first. */
export const bad = ['failed', 'timed_out', 'abandoned', 'lost']

/** Whether a tick that ended so ran. */
export const ran = (outcome: string) => !['skipped', 'missed', 'paused', 'superseded'].includes(outcome)

export const meanings: Record<string, string> = {
  running: 'a node runs it now',
  pending: 'wanted, and granted to no node yet',
  succeeded: 'the function or command ended without an error',
  failed: 'it returned an error, or a code other than 0',
  timed_out: "the job's timeout passed",
  cancelled: 'an operator, a replacement or a drain ended it',
  lost: 'its lease could not be renewed; the node ended it at the deadline',
  abandoned: 'its node did not report, and the lease lapsed; it may still have gone on',
  skipped: 'not run: another run of the job was going, or the job that it follows ended otherwise than it asks for',
  missed: 'not run: no node claimed it in time',
  paused: 'not run: the job was paused',
  superseded: 'not run: the definition was replaced',
}

const reasons: Record<string, string> = {
  late: 'it was late, and catch_up chose another tick',
  catch_up_max: 'it was late, and catch_up_max keeps only so many',
  start_within: 'it could only have started later than start_within allows',
  'no node': 'no living node could run it',
  failover: 'Redis lost what became of it in a failover, and no living node knows',
  overlap: 'another run of the job was going',
  upstream: 'the job that it follows ended this tick otherwise than when asks for',
  paused: 'the job was paused',
  'definition replaced': "the job's definition was replaced",
  max_runs: 'the job has had as many runs as max_runs allows',
  stalled: 'it made no progress for as long as stall_after allows',
  rewound: 'an operator set the cursor back to here',
  'lease lapsed': 'its node gave no sign for as long as the lease lasts',
  replaced: 'a newer tick took its place',
  draining: 'its node was stopped, and the time to end was over',
}

/** Why it ended so, or did not run, in a sentence; '' when there is nothing to say. */
export function why(r: Pick<RunView, 'reason' | 'note' | 'error'>): string {
  const words = reasons[r.reason] ?? r.reason
  return [words, r.note, r.error].filter(Boolean).join(': ')
}

/** The ends of attempts that another attempt of the same tick followed. */
export function followed(ends: EndView[]): Set<EndView> {
  const last = new Map<string, EndView>()
  for (const e of ends) if (e.run && e.tick && e.attempt > (last.get(e.tick)?.attempt ?? 0)) last.set(e.tick, e)
  return new Set(ends.filter((e) => e.run && e.tick && e.attempt > 0 && e.attempt < last.get(e.tick)!.attempt))
}

export function endTitle(e: EndView): string {
  const many = e.count > 1 ? `${e.count} ticks ` : e.attempt > 1 ? `attempt ${e.attempt} ` : ''
  const took = e.run && e.outcome !== 'running' ? `, ${duration(e.duration_ms)}` : ''
  return `${many}${label(e.outcome)}${took}${e.reason ? ': ' + (reasons[e.reason] ?? e.reason) : ''}`
}
