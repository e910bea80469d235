import { useGet, onNodes, onRuns } from '../query'
import { overview, overviewError } from '../overviewstate'
import { href } from '../router'
import { duration, now, relative } from '../time'
import type { Names, NodeView, Problem, RunView } from '../types'
import { Elapsed, Empty, Failure, JobLink, Section, Shape, State, Table, Time, Title, Why } from '../ui'
import { bad, meanings } from '../words'

export function Overview() {
  const o = overview.value
  const nodes = useGet<NodeView[]>('nodes', { when: onNodes })
  const running = useGet<RunView[]>('runs?outcome=running&limit=12', { when: onRuns })
  const recent = useGet<RunView[]>('runs?limit=40', { when: onRuns })
  return (
    <>
      <Title>Overview</Title>
      <Failure error={overviewError.value} />
      {o && o.jobs === 0 && <Empty type="escapement run --config config.yaml">This namespace has no jobs yet. A node brings those of its configuration.</Empty>}
      {o && <Counts />}
      <Problems />
      {o && o.failing.count > 0 && <Named of={o.failing} state="failed" text="failed in their latest run" />}
      {o && o.late.count > 0 && <Named of={o.late} state="late" text="are late: a tick is due and no node has claimed it" />}
      <NodeStrip nodes={nodes.items} />
      <div class="two">
        <Section title="Running" side={<a href={href('runs', '', { outcome: 'running' })}>all</a>}>
          <Failure error={running.error} />
          {running.items?.length === 0 && <p class="none">Nothing runs at this moment.</p>}
          <ul class="list">
            {running.items?.map((r) => (
              <li key={r.run}>
                <State of={r.reason.startsWith('pending') ? 'pending' : 'running'} note={r.reason} />
                <span class="grow">
                  <JobLink name={r.job} />
                  {r.shards > 1 && !r.whole && <small> shard {r.shard}</small>}
                </span>
                <span class="dim">{r.node}</span>
                <a href={href('runs', r.run)} class="num">
                  {r.started ? <Elapsed since={r.started} /> : 'waits'}
                </a>
              </li>
            ))}
          </ul>
        </Section>
        <Section title="Next">
          {o?.next?.length === 0 && <p class="none">No job has a next tick.</p>}
          <ul class="list">
            {o?.next?.map((n) => (
              <li key={n.job}>
                <span class="grow">
                  <JobLink name={n.job} />
                </span>
                <span class="dim">
                  <Time at={n.tick} />
                </span>
                <span class="num">{relative(Math.max(Date.parse(n.tick), now.value))}</span>
              </li>
            ))}
          </ul>
        </Section>
      </div>
      <Section title="Latest ends" side={<a href={href('runs')}>all runs</a>}>
        <Failure error={recent.error} />
        <Table label="latest ends" head={['Outcome', 'Job', 'Tick', 'Node', 'Took#', 'Why']}>
          {recent.items
            ?.filter((r) => r.outcome !== 'running' && !r.of)
            .slice(0, 12)
            .map((r) => (
              <tr key={r.run || r.job + r.tick + r.outcome}>
                <td>
                  <State of={r.outcome} />
                  {(r.count ?? 1) > 1 && <small> {r.count} ticks</small>}
                </td>
                <td>
                  <JobLink name={r.job} />
                </td>
                <td>{r.run ? <a href={href('runs', r.run)}><Time at={r.tick} /></a> : <Time at={r.tick} />}</td>
                <td class="dim">{r.node}</td>
                <td class="num">{r.started ? duration(r.duration_ms) : ''}</td>
                <td>
                  <Why of={r} />
                </td>
              </tr>
            ))}
        </Table>
      </Section>
    </>
  )
}

function Counts() {
  const o = overview.value!
  const sum = (of: string[]) => of.reduce((n, x) => n + (o.ended?.[x] ?? 0), 0)
  const runs = (outcome: string) => href('runs', '', { outcome })
  return (
    <>
      <ul class="counts" aria-label="counts">
        <Count of="running" n={o.running} text="running" to={runs('running')} />
        {o.pending > 0 && <Count of="pending" n={o.pending} text="pending" to={runs('pending')} />}
        <Count of="late" n={o.late.count} text="late" to={href('jobs')} />
        <Count of="failed" n={sum(bad)} text="failed" to={runs('failed')} title="failed, timed out, lost or abandoned" />
        <Count of="missed" n={sum(['missed'])} text="missed" to={runs('missed')} />
        <Count of="skipped" n={sum(['skipped'])} text="skipped" to={runs('skipped')} />
        <Count of="succeeded" n={sum(['succeeded'])} text="succeeded" to={runs('succeeded')} />
        <Count of="paused" n={o.paused} text={o.paused === 1 ? 'job paused' : 'jobs paused'} to={href('jobs')} />
      </ul>
      <p class="dim">
        {o.jobs.toLocaleString('en')} jobs. Ends since <Time at={o.since} />, {relative(Date.parse(o.since))}: a day, or the latest thousand or so.
      </p>
    </>
  )
}

function Count({ of, n, text, to, title }: { of: string; n: number; text: string; to: string; title?: string }) {
  return (
    <li class={n === 0 ? 'zero' : ''}>
      <a href={to} title={title ?? meanings[of]}>
        <b>
          <Shape of={of} />
          {n.toLocaleString('en')}
        </b>
        {text}
      </a>
    </li>
  )
}

function Named({ of, state, text }: { of: Names; state: string; text: string }) {
  const names = of.first ?? []
  return (
    <p class={`note ${state === 'late' ? 'warn' : 'bad'}`}>
      <Shape of={state} /> {of.count === 1 ? '1 job' : `${of.count} jobs`}{' '}
      {text}:{' '}
      {names.map((n, i) => (
        <span key={n}>
          {i > 0 && ', '}
          <JobLink name={n} />
        </span>
      ))}
      {of.count > names.length && ' and more'}
    </p>
  )
}

/** What the cluster has found wrong with itself. To look takes a while where there is much, so it is done once a minute. */
function Problems() {
  const found = useGet<Problem[]>('problems', { when: onNodes, gap: 60_000 })
  if (!found.items?.length) return null
  return (
    <Section title="Problems">
      <ul class="problems">
        {found.items.map((p) => (
          <li key={p.code + p.on + p.text} class={p.severity}>
            <State of={p.severity} /> <b>{p.text}</b> {p.on && <span class="dim">{p.on}</span>}
            <p>{p.cure}</p>
          </li>
        ))}
      </ul>
    </Section>
  )
}

function NodeStrip({ nodes }: { nodes: NodeView[] | undefined }) {
  return (
    <Section title="Nodes" side={<a href={href('nodes')}>all</a>}>
      {nodes?.length === 0 && <Empty type="escapement run --config config.yaml">No node lives: nothing runs.</Empty>}
      <ul class="nodes">
        {nodes?.slice(0, 24).map((n) => (
          <li key={n.id} title={n.trouble}>
            <State of={n.state} /> <b>{n.name}</b>
            <span class="dim">
              {n.running} running · {n.owned} owned
            </span>
            {n.trouble && <span class="warn">{n.trouble}</span>}
          </li>
        ))}
        {(nodes?.length ?? 0) > 24 && <li>and {nodes!.length - 24} more</li>}
      </ul>
    </Section>
  )
}
