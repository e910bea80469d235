import { useEffect, useState } from 'preact/hooks'
import { get, query } from '../api'
import { useGet } from '../query'
import { href, route, setQuery } from '../router'
import type { ActionView } from '../types'
import { Empty, Failure, State, Table, Time, Title } from '../ui'

const size = 100

/** Where the target of an action is shown; '' where it is not. */
function placeOf(a: ActionView): string {
  const noun = a.action.split(' ')[0] ?? ''
  if (noun === 'jobs' || noun === 'runs') return href(noun, a.target)
  return noun === 'nodes' || noun === 'locks' || noun === 'generations' ? href(noun) : ''
}

export function Audit() {
  const who = route.value.query.get('who') ?? ''
  const path = 'audit' + query({ who, limit: size })
  const { items, next, error } = useGet<ActionView[]>(path, { gap: 3000 })
  const [older, setOlder] = useState<{ rows: ActionView[]; next: string | undefined }>({ rows: [], next: undefined })
  useEffect(() => setOlder({ rows: [], next: undefined }), [path])
  const from = older.next ?? next
  const more = async () => {
    const page = await get<ActionView[]>('audit' + query({ who, limit: size, after: from }))
    setOlder({ rows: older.rows.concat(page.items), next: page.next })
  }
  const rows = (items ?? []).concat(older.rows)
  return (
    <>
      <Title
        side={
          <label class="search">
            <span class="unseen">only what this one did</span>
            <input type="search" placeholder="who, in full  /" defaultValue={who} onInput={(e) => setQuery('who', e.currentTarget.value.trim())} autoComplete="off" />
          </label>
        }
      >
        Audit
      </Title>
      <Failure error={error} />
      {items && rows.length === 0 && (
        <Empty type="escapement audit list">{who ? `Nothing that ${who} did is recorded. The name must be given in full.` : 'Nobody has done anything yet. What operators do over the command line, the API and here is recorded.'}</Empty>
      )}
      {rows.length > 0 && (
        <Table label="what operators did" head={['When', 'Who', 'By', 'Action', 'Target', 'Reason', 'Detail']}>
          {rows.map((a, i) => (
            <tr key={`${a.at} ${a.action} ${a.target} ${i}`}>
              <td>
                <Time at={a.at} />
              </td>
              <td>{a.who || <span class="none">unknown</span>}</td>
              <td class="dim">{a.via}</td>
              <td>{a.action}</td>
              <td>{placeOf(a) ? <a href={placeOf(a)}>{a.target}</a> : a.target}</td>
              <td class="wide">{a.reason}</td>
              <td class="wide dim">
                {a.detail} {a.error && <><State of="failed" /> {a.error}</>}
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
