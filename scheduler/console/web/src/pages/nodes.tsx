import { Do, post, type Action } from '../actions'
import { segment } from '../api'
import { onNodes, useGet } from '../query'
import { duration } from '../time'
import type { NodeView } from '../types'
import { Empty, Failure, Lacks, State, Table, Time, Title } from '../ui'

const drain = (name: string): Action => ({
  title: `Drain ${name}`,
  text: 'Nodes of this name claim nothing new, also after a restart, until somebody resumes the name. What runs there goes on to its end.',
  verb: 'Drain',
  danger: true,
  run: post(`nodes/${segment(name)}/drain`, (reason) => ({ reason }), () => `${name} is drained.`),
})

const resume = (name: string): Action => ({
  title: `Resume ${name}`,
  text: 'Nodes of this name claim again.',
  verb: 'Resume',
  run: post(`nodes/${segment(name)}/resume`, (reason) => ({ reason }), () => `${name} is resumed.`),
})

export function Nodes() {
  const { items, error, lacks, reload } = useGet<NodeView[]>('nodes', { when: onNodes })
  const done = () => setTimeout(reload, 300)
  return (
    <>
      <Title>Nodes</Title>
      <Failure error={error} />
      <Lacks what={lacks} />
      {items?.length === 0 && <Empty type="escapement run --config config.yaml">No node lives in this namespace: nothing runs.</Empty>}
      {items && items.length > 0 && (
        <Table label="nodes" head={['State', 'Name', 'Running#', 'Owned#', 'Jobs#', 'Clock#', 'Generation', 'Version', 'Started', 'Seen', 'Actions']}>
          {items.map((n) => (
            <tr key={n.id}>
              <td>
                <State of={n.state} />
              </td>
              <td>
                <b>{n.name}</b>
                {n.trouble && <div class="warn">{n.trouble}</div>}
                {n.config_refused && (
                  <div class="warn">
                    has refused a change of its configuration <Time at={n.config_refused.at} rel />: {n.config_refused.text}
                  </div>
                )}
                {n.superseded > 0 && <div class="warn">{n.superseded} jobs in a definition that was replaced</div>}
                {n.drain && (
                  <div class="dim">
                    drained by {n.drain.author || 'somebody'}: {n.drain.reason}
                  </div>
                )}
              </td>
              <td class="num">{n.running}</td>
              <td class="num">{n.owned}</td>
              <td class="num">{n.jobs}</td>
              <td class={`num ${Math.abs(n.clock_offset_ms) > 1000 ? 'warn' : ''}`} title="Redis' clock minus this node's">
                {duration(n.clock_offset_ms)}
              </td>
              <td>{n.generation || <span class="none">none</span>}</td>
              <td>
                {n.version || <span class="none">–</span>} <small class="dim">{n.revision}</small>
              </td>
              <td>
                <Time at={n.started} rel />
              </td>
              <td>
                <Time at={n.seen} rel />
              </td>
              <td>
                {n.drain ? <Do action={() => ({ ...resume(n.name), done })}>Resume</Do> : <Do action={() => ({ ...drain(n.name), done })} danger>Drain</Do>}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </>
  )
}
