// The actions on jobs and runs.
import { instant, post, type Action } from './actions'
import { act, parse, query, segment } from './api'
import { href } from './router'
import type { Asked, Cancelled, Rewound } from './types'

const at = (name: string, verb: string) => `jobs/${segment(name)}/${verb}`

function payloadOf(text: string | undefined): object {
  if (!text?.trim()) return {}
  try {
    return { payload: parse(text) }
  } catch {
    throw new Error('The payload is not JSON. A text needs quotes.')
  }
}

const wasAsked = (v: unknown) => (
  <>
    Run <a href={href('runs', (v as Asked).run)}>{(v as Asked).run}</a> was asked for.
  </>
)

export const runNow = (name: string): Action => ({
  title: `Run ${name} now`,
  text: 'One run outside the schedule. The schedule goes on as it is.',
  verb: 'Run',
  fields: [{ name: 'payload', label: 'Payload', kind: 'area', hint: 'JSON, may be empty' }],
  run: post(at(name, 'runs'), (_, v) => ({ ...payloadOf(v.payload), unique: crypto.randomUUID?.() }), wasAsked),
  done: () => {
    if (!location.hash.startsWith(href('jobs', name))) location.hash = href('jobs', name)
  },
})

export const pauseJob = (name: string): Action => ({
  title: `Pause ${name}`,
  text: 'Its ticks are recorded as paused and do not run, until somebody resumes it or the time below comes. A run that goes on is not touched.',
  verb: 'Pause',
  fields: [{ name: 'until', label: 'Until', kind: 'time', hint: "in this browser's zone; empty: until it is resumed" }],
  run: post(at(name, 'pause'), (reason, v) => ({ reason, until: instant(v.until) }), () => `${name} is paused.`),
})

export const resumeJob = (name: string): Action => ({
  title: `Resume ${name}`,
  text: 'It runs again from its next tick on. Ticks of the pause are not made up for.',
  verb: 'Resume',
  run: post(at(name, 'resume'), (reason) => ({ reason }), () => `${name} is resumed.`),
})

export const rewindJob = (name: string): Action => ({
  title: `Rewind ${name}`,
  text: "Its ticks since then run again, as the job's catch-up policy has it. What they did is done a second time.",
  verb: 'Rewind',
  danger: true,
  fields: [{ name: 'to', label: 'To', kind: 'time', hint: "in this browser's zone" }],
  run: post(at(name, 'rewind'), (reason, v) => ({ reason, to: instant(v.to) }), (v) => `${name} begins again with the tick of ${(v as Rewound).tick}.`),
})

export const deleteJob = (name: string, version: string): Action => ({
  title: `Delete ${name}`,
  text: 'Nothing more of it runs, and its history goes with it. A run that goes on keeps the history.',
  verb: 'Delete',
  danger: true,
  run: async (reason) => {
    const { warning } = await act(`jobs/${segment(name)}` + query({ was: version }), undefined, reason, 'DELETE')
    return `${name} is deleted. ${warning}`
  },
  done: () => (location.hash = href('jobs')),
})

export const cancelBackfill = (name: string): Action => ({
  title: `Cancel the backfill of ${name}`,
  text: 'Its runs that go on are cancelled, and no further one begins.',
  verb: 'Cancel the backfill',
  danger: true,
  run: async (reason) => {
    const { warning } = await act(at(name, 'backfill') + query({ reason }), undefined, reason, 'DELETE')
    return `The backfill of ${name} is cancelled. ${warning}`
  },
})

export const cancelRun = (run: string, job: string): Action => ({
  title: `Cancel this run of ${job}`,
  text: "Its context ends, and a command's processes are ended. What it has done so far stays done.",
  verb: 'Cancel the run',
  danger: true,
  run: post(`runs/${segment(run)}/cancel`, (reason) => ({ reason }), (v) => ((v as Cancelled).did === 'recorded' ? 'The run was cancelled before it began.' : 'Its node was told.')),
})

export const rerunRun = (run: string, job: string): Action => ({
  title: `Run this tick of ${job} again`,
  text: 'One more attempt of the same tick, with the same payload. What it did is done a second time.',
  verb: 'Run again',
  run: post(`runs/${segment(run)}/rerun`, (reason) => ({ reason }), wasAsked),
})

/** The same for many jobs, some at a time; it names those that refused. */
export function bulk(verb: 'pause' | 'resume' | 'run', names: string[], done: () => void): Action {
  const words = { pause: ['Pause', 'paused'], resume: ['Resume', 'resumed'], run: ['Run', 'asked to run'] }[verb]
  const shown = names.slice(0, 8).join(', ') + (names.length > 8 ? ` and ${names.length - 8} more` : '')
  return {
    title: `${words[0]} ${names.length} ${names.length === 1 ? 'job' : 'jobs'}`,
    text: shown,
    verb: words[0]!,
    danger: names.length > 50,
    fields: verb === 'pause' ? pauseJob('').fields : [],
    run: async (reason, values, progress) => {
      const failed: string[] = []
      let n = 0
      const queue = [...names]
      const worker = async () => {
        for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
          const body = verb === 'pause' ? { reason, until: instant(values.until) } : verb === 'resume' ? { reason } : {}
          await act(at(name, verb === 'run' ? 'runs' : verb), body, reason).catch((e: Error) => failed.push(`${name}: ${e.message}`))
          progress(`${++n} of ${names.length}`)
        }
      }
      await Promise.all(Array.from({ length: 4 }, worker))
      if (failed.length) throw new Error(`${names.length - failed.length} ${words[1]}, ${failed.length} not. ${failed.slice(0, 3).join('; ')}`)
      return `${names.length} ${words[1]}.`
    },
    done,
  }
}
