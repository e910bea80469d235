import { useState } from 'preact/hooks'
import { Do, may } from '../actions'
import { query, segment } from '../api'
import { cancelBackfill, cancelRun, deleteJob, pauseJob, resumeJob, rewindJob, runNow } from '../jobactions'
import { Durations } from '../durations'
import { Axis, Lane } from '../lane'
import { JobState, pauseText, planned } from '../jobstate'
import { onJob, useGet } from '../query'
import { href, route, setQuery } from '../router'
import { duration, now, relative, useJobZone } from '../time'
import type { BackfillView, EndView, JobView, LockView, RunView, TickView } from '../types'
import { Command, Empty, Facts, Failure, JobLinks, Progress, Section, State, Table, Time, Title, Why } from '../ui'
import { bad, label, outcomes } from '../words'
import { useWidth } from '../width'

const nextShown = 20

export function Job({ name }: { name: string }) {
  const mine = onJob(name)
  const job = useGet<JobView>(`jobs/${segment(name)}`, { when: mine })
  const runs = useGet<RunView[]>('runs' + query({ job: name, limit: 200 }), { when: mine, gap: 500 })
  const ticks = useGet<TickView[]>(`jobs/${segment(name)}/ticks?limit=${2 * nextShown}`, { gap: 5000, when: mine })
  // Those that were asked for are not the next ones any more when they are due, or run: the answer is some seconds old.
  const begun = new Set(runs.items?.map((r) => r.trigger !== 'manual' && r.tick))
  const next = (ticks.items ?? []).filter((t) => Date.parse(t.tick) > now.value && !begun.has(t.tick))
  const j = job.items
  useJobZone(j?.time_zone)
  const again = () => setTimeout(() => (job.reload(), runs.reload()), 300)
  if (!j)
    return (
      <>
        <Title>{name}</Title>
        <Failure error={job.error} />
        {job.error && <Command text="escapement jobs list" />}
      </>
    )
  return (
    <>
      <Title
        side={
          <>
            <Do action={() => ({ ...runNow(name), done: again })}>Run now</Do>
            {j.paused ? <Do action={() => ({ ...resumeJob(name), done: again })}>Resume</Do> : <Do action={() => ({ ...pauseJob(name), done: again })}>Pause</Do>}
            {j.stored && may() && <a href={href('store', name)}>Edit</a>}
            {j.stored && <Do action={() => deleteJob(name, j.stored!)} danger>Delete</Do>}
            {j.after.length === 0 && (
              <Do action={() => ({ ...rewindJob(name), done: again })} danger>
                Rewind
              </Do>
            )}
          </>
        }
      >
        {name}
      </Title>
      <Failure error={job.error ?? runs.error} />
      {j.paused && <p class="note idle">Paused {pauseText(j)}</p>}
      {j.no_node && <p class="note warn">No node can run it: {j.no_node}</p>}
      {j.orphan && <p class="note warn">No living node of its generation holds it. It stands still until one does.</p>}
      {!!j.superseded?.length && <p class="note warn">{j.superseded.join(', ')} hold another definition than the stored one.</p>}
      <Facts
        of={[
          ['State', <JobState job={j} />],
          ['Schedule', j.after.length ? <>after <JobLinks names={j.after} />, when {j.after.length > 1 && 'all '}{j.when}</> : <><code>{j.schedule}</code> {j.time_zone}</>],
          ['Graph', j.after.length > 0 && <a href={href('graph', '', { q: name })}>graph</a>],
          ['Next', j.next && <><Time at={j.next} tz={j.time_zone} /> <small class="dim">{relative(Date.parse(j.next))}</small></>],
          ['Last', j.last_outcome && <State of={j.last_outcome} />],
          ['Last success', j.last_success && <Time at={j.last_success} tz={j.time_zone} rel />],
          ['Goes first', j.owner],
        ]}
      />
      <Backfill name={name} />
      <Ticks name={name} job={j} runs={runs.items ?? []} ticks={planned(j, next)} />
      <div class="two">
        <Section title="Durations">
          <Durations runs={runs.items ?? []} tz={j.time_zone} />
        </Section>
        <Next job={j} ticks={next.slice(0, nextShown)} error={ticks.error} />
      </div>
      <Rows runs={runs.items} job={j} again={again} />
      <div class="two">
        <Lock name={name} job={j} />
        <Settings job={j} />
      </div>
    </>
  )
}

/** A backfill that is under way, or ended last. */
function Backfill({ name }: { name: string }) {
  const { items, reload } = useGet<BackfillView[]>('backfills' + query({ job: name }), { when: onJob(name), gap: 2000 })
  const b = items?.[0]
  if (!b) return null
  const counts = Object.entries(b.counts ?? {}).map(([o, n]) => `${n} ${label(o)}`)
  return (
    <div class="note idle">
      Backfill of <Time at={b.from} /> to <Time at={b.to} /> by {b.author}: {b.state}, {b.ended} of {b.ticks} ticks ended{counts.length > 0 && ` (${counts.join(', ')})`}
      {b.running > 0 && `, ${b.running} run or wait`}
      {b.eta && <>, ends about <Time at={b.eta} rel /></>}
      {b.reason && `, cancelled by ${b.by}: ${b.reason}`}.{' '}
      {b.state === 'going' && <Do action={() => ({ ...cancelBackfill(name), done: reload })} danger>Cancel the backfill</Do>}
    </div>
  )
}

function endOf(r: RunView): EndView {
  return { run: r.run, tick: r.tick, until: r.until, count: r.count ?? 1, attempt: r.attempt, outcome: r.outcome, reason: r.reason, started: r.started, duration_ms: r.duration_ms }
}

/** The latest ticks and the next ones on one axis. */
function Ticks({ name, job, runs, ticks }: { name: string; job: JobView; runs: RunView[]; ticks: TickView[] }) {
  const [box, width] = useWidth()
  const ends = runs.filter((r) => !r.of).map(endOf).reverse()
  const t = now.value
  const past = Math.max(30e3, t - Math.min(t, ...ends.slice(-40).map((e) => Date.parse(e.tick!)))) * 1.02
  const ahead = Math.min(past / 3, Math.max(10e3, Date.parse(ticks.at(-1)?.tick ?? '') - t || 10e3))
  const w = { from: t - past, to: t + ahead }
  return (
    <Section title="Ticks">
      <div ref={box}>
        <svg class="lanes" width={width} height="52" role="group" aria-label={`the latest ticks of ${name}, and the next ones; the list below has the same`}>
          <Axis w={w} width={width} height={50} tz={job.time_zone} />
          <g transform="translate(0 22)">
            <Lane ends={ends} ticks={ticks} w={w} width={width} height={26} tz={job.time_zone} />
          </g>
        </svg>
      </div>
    </Section>
  )
}

function Next({ job, ticks, error }: { job: JobView; ticks: TickView[]; error: Error | undefined }) {
  return (
    <Section title={`Next ${nextShown} ticks`} side={<small class="dim">{job.time_zone}</small>}>
      <Failure error={error} />
      {job.after.length > 0 && <p class="none">It has no schedule: it runs when a tick of {job.after.join(', ')} {job.when === 'any' ? 'has ended' : `has ${job.when}`}.</p>}
      {job.paused && <p class="dim">Paused: ticks before its end do not run.</p>}
      <ol class="ticks" tabIndex={0} aria-label="next ticks">
        {ticks.map((t) => (
          <li key={t.tick}>
            <time dateTime={t.tick} title={t.tick}>
              {t.local.slice(0, 19).replace('T', ' ')}
            </time>
            <span class="dim">{t.local.slice(19).replace(/^\.\d+/, '').replace('Z', 'UTC')}</span>
            <span class="num">{relative(Date.parse(t.tick))}</span>
            {t.words && <span class="warn">{t.words}</span>}
          </li>
        ))}
      </ol>
    </Section>
  )
}

function Rows({ runs, job, again }: { runs: RunView[] | undefined; job: JobView; again: () => void }) {
  const outcome = route.value.query.get('outcome') ?? ''
  const [most, setMost] = useState(40)
  const shards = route.value.query.get('shards') === 'yes'
  const found = (runs ?? []).filter((r) => (shards || !r.of) && (!outcome || r.outcome === outcome || (outcome === 'bad' && bad.includes(r.outcome))))
  const tz = job.time_zone
  return (
    <Section
      title="Runs and ticks"
      side={
        <div class="actions">
          {job.shards > 1 && (
            <label class="check">
              <input type="checkbox" checked={shards} onChange={(e) => setQuery('shards', e.currentTarget.checked ? 'yes' : '')} /> shards
            </label>
          )}
          <label>
          <span class="unseen">outcome</span>
          <select value={outcome} onChange={(e) => setQuery('outcome', e.currentTarget.value)}>
            <option value="">all outcomes</option>
            <option value="bad">went wrong</option>
            {outcomes.map((o) => (
              <option key={o} value={o}>
                {label(o)}
              </option>
            ))}
          </select>
          </label>
        </div>
      }
    >
      {runs && found.length === 0 && (
        <Empty type={`escapement jobs run ${job.name} --wait`}>{outcome ? 'None of the latest 200 ended so.' : 'It has not run yet. Run it by hand:'}</Empty>
      )}
      {found.length > 0 && (
        <Table label="runs and ticks" head={['Outcome', 'Tick', 'Attempt#', 'Began late#', 'Took#', 'Node', 'Token', 'Trigger', 'Why']}>
          {found.slice(0, most).map((r) => (
            <tr key={r.run || `${r.tick} ${r.outcome} ${r.until}`}>
              <td>
                <State of={r.reason.startsWith('pending') ? 'pending' : r.outcome} />
                {r.shards > 1 && <small class="dim"> {r.whole ? `${r.shards} shards` : `shard ${r.shard}`}</small>}
                {r.progress && <div><Progress of={r.progress} /></div>}
              </td>
              <td>
                {r.run ? <a href={href('runs', r.run)}><Time at={r.tick} tz={tz} /></a> : <Time at={r.tick} tz={tz} />}
                {(r.count ?? 1) > 1 && <> – <Time at={r.until} tz={tz} /> <small>{r.count} ticks</small></>}
              </td>
              <td class="num">{r.attempt > 0 ? r.attempt : ''}{r.tries > 1 && <small class="dim"> {r.tries} tries</small>}</td>
              <td class="num">{r.started ? duration(r.lag_ms) : ''}</td>
              <td class="num">{r.started ? duration(r.duration_ms) : ''}</td>
              <td>{r.node}</td>
              <td class="dim code">{r.token}</td>
              <td class="dim">{label(r.trigger)}</td>
              <td>
                <Why of={r} />
                {r.outcome === 'running' && !r.whole && <Do action={() => ({ ...cancelRun(r.run, job.name), done: again })}>Cancel</Do>}
              </td>
            </tr>
          ))}
        </Table>
      )}
      {found.length > most && (
        <button type="button" onClick={() => setMost(most + 80)}>
          Show more
        </button>
      )}
    </Section>
  )
}

/** Who holds the job now: its lease, with the token and the time left. */
function Lock({ name, job }: { name: string; job: JobView }) {
  const held = useGet<LockView>(job.open ? `locks/${segment(name)}` : null, { when: onJob(name), gap: 1000 })
  const all = job.open && held.items ? [held.items, ...(held.items.also ?? [])] : []
  return (
    <Section title="Lock and shards">
      {all.length === 0 && <p class="none">{job.open ? 'It waits to be granted.' : 'Nobody holds it: no run is going.'}</p>}
      {all.length > 0 && (
        <Table label="leases" head={['Name', 'Node', 'Token', 'Left#', 'Run']}>
          {all.map((l) => (
            <tr key={l.name + l.run}>
              <td>{l.name}</td>
              <td>{l.node || l.holder}</td>
              <td class="code">{l.token}</td>
              <td class="num">{duration(l.ttl_ms)}</td>
              <td>{l.run && <a href={href('runs', l.run)}>run</a>}</td>
            </tr>
          ))}
        </Table>
      )}
      {job.shards > 1 && <p class="dim">Each tick has {job.shards} shards; they run at once, on different nodes.</p>}
    </Section>
  )
}

/** The first of a list of dates, and how many more there are. */
const some = (dates: string[]) => dates.slice(0, 4).join(', ') + (dates.length > 4 ? ` and ${dates.length - 4} more` : '')

function Settings({ job: j }: { job: JobView }) {
  const none = <span class="none">none</span>
  const labels = Object.entries(j.labels ?? {})
  return (
    <Section title="Settings">
      <Facts
        of={[
          ['overlap', j.overlap], ['catch_up', j.after.length ? false : j.catch_up + (j.catch_up === 'all' ? `, at most ${j.catch_up_max}` : '')],
          ['start_within', j.start_within ?? none], ['timeout', j.timeout ?? none],
          ['ttl', j.ttl], ['on_crash', j.on_crash + (j.on_crash === 'rerun' ? `, at most ${j.rerun_max}` : '')],
          ['retry', j.retry?.max ? `${j.retry.max}, first after ${j.retry.backoff}${j.retry.on === 'other_node' ? ', on another node' : ''}` : none],
          ['try_timeout', j.retry?.try_timeout], ['shards', String(j.shards)],
          ['stall_after', j.stall_after && `${j.stall_after}, then ${label(j.on_stall)}`],
          ['except', j.except.length > 0 && some(j.except)], ['only', j.only.length > 0 && some(j.only)], ['jitter', j.jitter && `below ${j.jitter}`],
          ['start_at', !!j.start_at && <Time at={j.start_at} tz={j.time_zone} />], ['end_at', !!j.end_at && <Time at={j.end_at} tz={j.time_zone} />],
          ['max_runs', !!j.max_runs && `${j.ran ?? 0} of ${j.max_runs} have run`],
          ['labels', labels.length ? labels.map(([k, v]) => `${k}=${v}`).join(', ') : none], ['generation', j.generation || none],
          ['revision', j.revision], ['history from', !j.after.length && <Time at={j.history_from} tz={j.time_zone} />],
          ['handler', j.handler || false], ['stored', !!j.stored && <Time at={j.stored} tz={j.time_zone} />], ['managed_by', j.managed_by || false],
        ]}
      />
      {j.payload !== null && <pre tabIndex={0} aria-label="payload">{JSON.stringify(j.payload, null, 2)}</pre>}
      <p class="dim">
        Since the job was made:{' '}
        {Object.entries(j.counts ?? {})
          .map(([o, n]) => `${n} ${label(o)}`)
          .join(', ') || 'nothing yet'}
        .
      </p>
      <Command text={`escapement jobs get ${j.name}`} />
    </Section>
  )
}
