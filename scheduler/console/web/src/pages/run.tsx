import { useEffect, useRef } from 'preact/hooks'
import { Do } from '../actions'
import { query, segment } from '../api'
import { cancelRun, rerunRun } from '../jobactions'
import { paused } from '../live'
import { never, onRuns, useGet } from '../query'
import { href } from '../router'
import { duration, useJobZone } from '../time'
import type { JobView, RunView } from '../types'
import { Command, Elapsed, Facts, Failure, JobLink, Progress, Section, State, Table, Time, Title, Why } from '../ui'
import { label, meanings, why } from '../words'

const outputEvery = 1500

export function Run({ id }: { id: string }) {
  const job = useRef('')
  const run = useGet<RunView>(`runs/${segment(id)}`, { when: (c) => c.name === 'runs' && c.runs.some((r) => r.run === id || r.job === job.current) })
  const r = run.items
  job.current = r?.job ?? ''
  // What it writes is no event.
  const running = r?.outcome === 'running'
  useEffect(() => {
    if (!running) return
    const timer = setInterval(() => !document.hidden && !paused.peek() && run.reload(), outputEvery)
    return () => clearInterval(timer)
  }, [running])
  // The attempts and shards of the same tick are among the job's runs.
  const others = useGet<RunView[]>(r ? 'runs' + query({ job: r.job, limit: 200 }) : null, { when: onRuns, gap: 1000 })
  const about = useGet<JobView>(r ? `jobs/${segment(r.job)}` : null, { when: never })
  useJobZone(about.items?.time_zone)
  if (!r || !(about.items || about.error))
    return (
      <>
        <Title>Run</Title>
        <Failure error={run.error} />
        {run.error && <Command text={`escapement runs get ${id}`} />}
      </>
    )
  const going = r.outcome === 'running'
  const pending = r.reason.startsWith('pending')
  const same = (others.items ?? []).filter((o) => o.run && o.tick === r.tick)
  const attempts = same.filter((o) => o.shard === r.shard && !!o.whole === !!r.whole).sort((a, b) => a.attempt - b.attempt)
  const shards = r.whole ? same.filter((o) => !o.whole).sort((a, b) => a.shard - b.shard) : []
  const again = () => setTimeout(() => (run.reload(), others.reload()), 300)
  return (
    <>
      <Title
        side={
          going ? (
            <Do action={() => ({ ...cancelRun(r.run, r.job), done: again })} danger>
              Cancel
            </Do>
          ) : (
            <Do action={() => ({ ...rerunRun(r.run, r.job), done: again })}>Run again</Do>
          )
        }
      >
        Run of <JobLink name={r.job} />
      </Title>
      <Failure error={run.error} />
      <p class="lead">
        <State of={pending ? 'pending' : r.outcome} /> {meanings[pending ? 'pending' : r.outcome]}.
        {why(r) && <span class="reason"> {why(r)}</span>}
      </p>
      <Facts
        of={[
          ['Tick', <Time at={r.tick} />],
          ['Started', r.started ? <><Time at={r.started} /> <small class="dim">{duration(r.lag_ms)} late</small></> : pending ? <>not yet{r.not_before && <>, not before <Time at={r.not_before} /></>}</> : 'never'],
          [going ? 'Runs for' : 'Took', r.started && (going ? <Elapsed since={r.started} /> : duration(r.duration_ms))],
          ['Progress', !!r.progress && <Progress of={r.progress} />],
          ['Ended', !going && <Time at={r.ended} />],
          ['Node', r.whole ? false : r.node],
          ['Token', r.token !== '' && <span class="code">{r.token}</span>],
          ['Attempt', r.attempt > 0 && <>{r.attempt}{r.tries > 1 && `, ${r.tries} tries`}</>],
          ['Trigger', label(r.trigger)],
          ['Shard', r.shards > 1 && (r.whole ? `all ${r.shards}` : `${r.shard} of ${r.shards}`)],
          ['Parameter', r.param || false],
          ['Run', <span class="code">{r.run}</span>],
        ]}
      />
      {attempts.length > 1 && <Chain title="Attempts" runs={attempts} here={r.run} />}
      {r.next_attempt && !attempts.some((a) => a.run === r.next_attempt) && (
        <p class="note idle">
          <a href={href('runs', r.next_attempt)}>Another attempt</a> followed this one.
        </p>
      )}
      {shards.length > 0 && <Chain title="Shards" runs={shards} here={r.run} />}
      {r.of && (
        <p class="note idle">
          A shard of <a href={href('runs', r.of)}>a tick with {r.shards}</a>.
        </p>
      )}
      {r.payload !== undefined && (
        <Section title="Payload">
          <pre tabIndex={0}>{JSON.stringify(r.payload, null, 2)}</pre>
        </Section>
      )}
      {!r.whole && (
        <Section title="Output" side={<small class="dim">the last 64 KiB</small>}>
          {r.output ? <pre tabIndex={0} class="output">{r.output}</pre> : <p class="none">{going ? 'It has written nothing yet.' : 'It wrote nothing.'}</p>}
        </Section>
      )}
      <Command text={`escapement runs get ${r.run}`} />
    </>
  )
}

function Chain({ title, runs, here }: { title: string; runs: RunView[]; here: string }) {
  return (
    <Section title={title}>
      <Table label={title} head={[title === 'Shards' ? 'Shard#' : 'Attempt#', 'Outcome', 'Started', 'Took#', 'Node', 'Token', 'Why']}>
        {runs.map((r) => (
          <tr key={r.run} aria-current={r.run === here ? 'true' : undefined}>
            <td class="num">
              <a href={href('runs', r.run)}>{title === 'Shards' ? r.shard : r.attempt}</a>
            </td>
            <td>
              <State of={r.reason.startsWith('pending') ? 'pending' : r.outcome} />
            </td>
            <td>
              <Time at={r.started} />
            </td>
            <td class="num">{r.started ? duration(r.duration_ms) : ''}</td>
            <td>{r.node}</td>
            <td class="dim code">{r.token}</td>
            <td><Why of={r} /></td>
          </tr>
        ))}
      </Table>
    </Section>
  )
}
