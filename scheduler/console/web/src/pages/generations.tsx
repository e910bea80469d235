import { Do, post, type Action } from '../actions'
import { segment } from '../api'
import { onNodes, useGet } from '../query'
import { full, zoneFor } from '../time'
import type { GenerationView, Names, Promotion, ScheduleView } from '../types'
import { Empty, Facts, Failure, JobLink, Lacks, State, Title } from '../ui'

const called = (name: string) => name || 'the generation without a name'

function promotion(g: GenerationView): Action {
  return {
    title: `Promote ${called(g.name)}`,
    text: `It runs its jobs from then on, and the generation that runs them now stands by. ${words(g)}`,
    verb: 'Promote',
    danger: true,
    fields: [
      { name: 'job', label: 'Only jobs named', hint: 'a pattern such as report-*; empty: all' },
      { name: 'cancel_running', label: 'cancel runs that are going', kind: 'check', hint: 'else they end first' },
      { name: 'force', label: 'by force', kind: 'check', hint: 'also when its nodes lack jobs, or do not live' },
    ],
    run: post(
      `generations/${segment(g.name || '-')}/promote`,
      (reason, v) => ({ reason, job: v.job || undefined, cancel_running: v.cancel_running === 'yes', force: v.force === 'yes' }),
      (v) => `${called(g.name)} runs ${(v as Promotion).switched.count + (v as Promotion).created.count} more jobs.`,
    ),
  }
}

function words(g: GenerationView): string {
  const jobs = (n: number) => `${n} ${n === 1 ? 'job' : 'jobs'}`
  return (
    [g.added.count && `Adds ${jobs(g.added.count)}.`, g.removed.count && `Lacks ${jobs(g.removed.count)}.`, g.changed.schedules && `Runs ${jobs(g.changed.schedules)} at other times.`, g.changed.settings && `Has other settings for ${jobs(g.changed.settings)}.`]
      .filter(Boolean)
      .join(' ') || 'Nothing differs from what runs now.'
  )
}

export function Generations() {
  const { items, error, lacks, reload } = useGet<GenerationView[]>('generations', { when: onNodes, gap: 2000 })
  const list = [...(items ?? [])].sort((a, b) => Number(b.state === 'active') - Number(a.state === 'active'))
  return (
    <>
      <Title>Generations</Title>
      <Failure error={error} />
      <Lacks what={lacks} />
      <p class="dim">A generation is a deployed cluster. One is active; nodes of others stand by until theirs is promoted. Each is compared with what runs now.</p>
      {items?.length === 0 && <Empty type="escapement run --config config.yaml">There is no generation yet: no node has run here.</Empty>}
      <div class="cards">
        {list.map((g) => (
          <section key={g.name} class={`card ${g.state === 'active' ? 'on' : ''}`} aria-label={called(g.name)}>
            <header class="row">
              <h2>{g.name || <span class="none">without a name</span>}</h2>
              <State of={g.state} />
            </header>
            <Facts of={[['Nodes', <List of={g.nodes} plain />], ['Jobs', String(g.jobs)], ['Runs now', `${g.running} jobs`]]} />
            {g.promotion && <p class="note idle">A promotion is under way{g.promotion.pattern && `, of ${g.promotion.pattern}`}.</p>}
            {g.unsettled.count > 0 && <p class="note idle">{g.unsettled.count} jobs are not stored yet: its nodes have just started.</p>}
            <p class="dim">{words(g)}</p>
            {g.added.count > 0 && <Part title="Added" of={g.added} />}
            {g.removed.count > 0 && <Part title="Not in it" of={g.removed} />}
            {!!g.schedules?.length && (
              <>
                <h3>At other times</h3>
                <ul>
                  {g.schedules.map((s) => (
                    <li key={s.job}>
                      <JobLink name={s.job} />: <When of={s.now} /> → <When of={s.new} />
                      {s.only_new?.[0] && <small class="dim"> first new {full(Date.parse(s.only_new[0]), zoneFor(s.new.time_zone))}</small>}
                    </li>
                  ))}
                </ul>
              </>
            )}
            {!!g.settings?.length && (
              <>
                <h3>Other settings</h3>
                <ul>
                  {g.settings.map((s) => (
                    <li key={s.job}>
                      <JobLink name={s.job} />: {s.fields?.join(', ')}
                    </li>
                  ))}
                </ul>
              </>
            )}
            {(g.state !== 'active' || g.running < g.jobs) && (
              <p class="buttons">
                <Do action={() => ({ ...promotion(g), done: () => setTimeout(reload, 300) })} danger>
                  Promote
                </Do>
              </p>
            )}
          </section>
        ))}
      </div>
    </>
  )
}

function When({ of: s }: { of: ScheduleView }) {
  return (
    <>
      <code>{s.after ? `after ${s.after}` : s.schedule}</code>
      {s.time_zone && s.time_zone !== 'UTC' && ` ${s.time_zone}`} <small class="dim">{s.ticks} a day</small>
    </>
  )
}

function Part({ title, of }: { title: string; of: Names }) {
  return (
    <>
      <h3>{title}</h3>
      <List of={of} />
    </>
  )
}

function List({ of, plain }: { of: Names; plain?: boolean }) {
  const names = of.first ?? []
  if (of.count === 0) return <span class="none">none</span>
  return (
    <span>
      {names.map((n, i) => (
        <span key={n}>
          {i > 0 && ', '}
          {plain ? n : <JobLink name={n} />}
        </span>
      ))}
      {of.count > names.length && ` and ${of.count - names.length} more`}
    </span>
  )
}
