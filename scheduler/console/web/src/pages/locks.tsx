import { useEffect } from 'preact/hooks'
import { Do, post, type Action } from '../actions'
import { segment } from '../api'
import { never, useGet } from '../query'
import { href, route, setQuery } from '../router'
import { paused } from '../live'
import { duration } from '../time'
import type { LockView, Release } from '../types'
import { Empty, Failure, Lacks, Table, Title } from '../ui'

const did: Record<string, string> = {
  told: 'Its holder was asked to end, and gives it back itself.',
  cancelled: 'Its run was cancelled.',
  taken: 'It was taken from its holder, who may still be going.',
  lapses: 'It is not renewed any more, and ends with its time.',
}

const release = (l: LockView): Action => ({
  title: `Release ${l.name}`,
  text: l.kind === 'run' ? "Its run is cancelled; the lease ends with it." : 'Its holder is asked to end. By force it is taken away, though the holder may still be going: then only fencing tokens protect what it writes to.',
  verb: 'Release',
  danger: true,
  fields: [{ name: 'force', label: 'by force', kind: 'check' }],
  run: post(`locks/${segment(l.name)}/release`, (reason, v) => ({ token: l.token, force: v.force === 'yes', reason }), (v) => did[(v as Release).did] ?? 'Released.'),
})

const every = 3000

/** what of a name somebody holds */
function kindOf(l: LockView): string {
  if (l.kind === 'run') return 'run of a job'
  if (l.permits > 1) return `permit of ${l.permits}`
  return l.mode || 'lock'
}

export function Locks() {
  const q = (route.value.query.get('q') ?? '').toLowerCase()
  const { items, next, lacks, error, reload } = useGet<LockView[]>('locks?limit=1000', { when: never })
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && !paused.peek() && reload(), every)
    return () => clearInterval(timer)
  }, [])
  const rows = items?.filter((l) => [l.name, l.holder, l.node].some((t) => t.toLowerCase().includes(q)))
  return (
    <>
      <Title
        side={
          <label class="search">
            <span class="unseen">search by name, holder or node</span>
            <input type="search" placeholder="search  /" defaultValue={q} onInput={(e) => setQuery('q', e.currentTarget.value.trim())} autoComplete="off" />
          </label>
        }
      >
        Locks
      </Title>
      <Failure error={error} />
      <Lacks what={lacks || (next ? 'the first thousand are shown' : '')} />
      {rows?.length === 0 && <Empty type="escapement lock NAME -- COMMAND">{q ? 'Nothing that is held fits.' : 'Nothing is held: no run is going, and nobody has taken a lock.'}</Empty>}
      {!!rows?.length && (
        <Table label="locks" head={['Name', 'Kind', 'Holder', 'Token', 'Left#', 'Waiting#', 'Run', 'Actions']}>
          {rows.map((l) => (
            <tr key={l.name + l.token}>
              <td>
                <b>{l.name}</b>
                {l.revoked && <small class="warn"> asked to end</small>}
              </td>
              <td class="dim">{kindOf(l)}</td>
              <td>{l.node || l.holder || l.owner}</td>
              <td class="code dim">{l.token}</td>
              <td class="num">{l.ttl_ms ? duration(l.ttl_ms) : <span class="none">not known</span>}</td>
              <td class="num">{l.waiters || ''}</td>
              <td>{l.run && <a href={href('runs', l.run)}>run</a>}</td>
              <td>{l.token && <Do action={() => ({ ...release(l), done: () => setTimeout(reload, 300) })} danger>Release</Do>}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  )
}
