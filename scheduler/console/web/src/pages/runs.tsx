import { useEffect, useState } from 'preact/hooks'
import { get, query } from '../api'
import { onRuns, useGet } from '../query'
import { href, route, setQuery } from '../router'
import { duration } from '../time'
import type { RunView } from '../types'
import { Empty, Failure, JobLink, Lacks, State, Table, Time, Title, Why } from '../ui'
import { label, outcomes } from '../words'

const size = 100

export function Runs() {
  const outcome = route.value.query.get('outcome') ?? ''
  const path = 'runs' + query({ outcome, limit: size })
  const { items, next, lacks, error } = useGet<RunView[]>(path, { when: onRuns, gap: 1000 })
  const [older, setOlder] = useState<{ rows: RunView[]; next: string | undefined }>({ rows: [], next: undefined })
  useEffect(() => setOlder({ rows: [], next: undefined }), [path])
  const from = older.next ?? next
  const more = async () => {
    const page = await get<RunView[]>('runs' + query({ outcome, limit: size, after: from }))
    setOlder({ rows: older.rows.concat(page.items), next: page.next })
  }
  const known = new Set<string>()
  const key = (r: RunView) => r.run || `${r.job} ${r.tick} ${r.outcome} ${r.until}`
  const rows = [...(items ?? []), ...older.rows].filter((r) => !known.has(key(r)) && known.add(key(r)))
  return (
    <>
      <Title
        side={
          <label>
            <span class="unseen">outcome</span>
            <select value={outcome} onChange={(e) => setQuery('outcome', e.currentTarget.value)}>
              <option value="">all outcomes</option>
              {outcomes.map((o) => (
                <option key={o} value={o}>
                  {label(o)}
                </option>
              ))}
            </select>
          </label>
        }
      >
        Runs
      </Title>
      <Failure error={error} />
      <Lacks what={lacks} />
      {items && rows.length === 0 && <Empty type={`escapement runs list${outcome && ` --outcome ${outcome}`}`}>{outcome ? `The recorded history has none that is ${label(outcome)}.` : 'Nothing has run yet.'}</Empty>}
      {rows.length > 0 && (
        <Table label="runs" head={['Outcome', 'Job', 'Tick', 'Ended', 'Began late#', 'Took#', 'Node', 'Attempt#', 'Why']}>
          {rows.map((r) => (
            <tr key={key(r)}>
              <td>
                <State of={r.reason.startsWith('pending') ? 'pending' : r.outcome} />
                {(r.count ?? 1) > 1 && <small> {r.count} ticks</small>}
              </td>
              <td>
                <JobLink name={r.job} />
                {r.shards > 1 && <small class="dim"> {r.whole ? `${r.shards} shards` : `shard ${r.shard}`}</small>}
              </td>
              <td>{r.run ? <a href={href('runs', r.run)}><Time at={r.tick} /></a> : <Time at={r.tick} />}</td>
              <td>
                <Time at={r.ended} />
              </td>
              <td class="num">{r.started ? duration(r.lag_ms) : ''}</td>
              <td class="num">{r.started ? duration(r.duration_ms) : ''}</td>
              <td class="dim">{r.node}</td>
              <td class="num">{r.attempt > 0 ? r.attempt : ''}</td>
              <td>
                <Why of={r} />
              </td>
            </tr>
          ))}
        </Table>
      )}
      {from && (
        <button type="button" onClick={more}>
          Show older
        </button>
      )}
    </>
  )
}
