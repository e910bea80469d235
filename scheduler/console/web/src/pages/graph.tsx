import { onRuns, useGet } from '../query'
import { href, route, setQuery } from '../router'
import type { GraphJob } from '../types'
import { Empty, Failure, JobLink, JobLinks, Lacks, Shape, State, Table, Time, Title } from '../ui'
import { components, nearest, placed, type Node } from '../layered'

const most = 150 // jobs that are drawn at once
const size = { width: 196, height: 50, across: 110, down: 14 }
const left = (n: Node) => n.layer * (size.width + size.across)
const top = (n: Node) => n.row * (size.height + size.down)

/** Which job follows which, from left to right. */
export function Graph() {
  const { items, error, lacks } = useGet<GraphJob[]>('graph', { when: onRuns, gap: 5000 })
  const q = route.value.query.get('q') ?? ''
  const all = items ?? []
  const chosen = choose(all, q.toLowerCase())
  const nodes = placed(chosen)
  const circle = nodes.filter((n) => n.circle).map((n) => n.name)
  return (
    <>
      <Title
        side={
          <label class="search">
            <span class="unseen">search jobs by name</span>
            <input type="search" placeholder="search by name  /" defaultValue={q} onInput={(e) => setQuery('q', e.currentTarget.value.trim())} autoComplete="off" spellcheck={false} />
          </label>
        }
      >
        Graph <small class="dim">{items && (chosen.length < all.length ? `${chosen.length} of ${all.length}` : all.length)}</small>
      </Title>
      <Failure error={error} />
      <Lacks what={lacks} />
      {items?.length === 0 && <Empty type="escapement jobs graph">No job follows another: none has a setting after.</Empty>}
      {all.length > 0 && chosen.length === 0 && <Empty>No job that follows another, or is followed, has “{q}” in its name.</Empty>}
      {chosen.length === most && all.length > most && <p class="note idle">Not all are drawn. Search for a job to see those around it.</p>}
      {circle.length > 0 && (
        <p class="note bad">
          These jobs wait for each other in a circle, and no tick begins one of them: <JobLinks names={circle} />.
        </p>
      )}
      {chosen.length > 0 && (
        <>
          <Picture nodes={nodes} q={q.toLowerCase()} there={new Set(all.map((j) => j.name))} />
          <Table label="the same as a list" head={['Job', 'After', 'When', 'State', 'Last', 'Last tick']}>
            {chosen.map((j) => (
              <tr key={j.name}>
                <td>
                  <JobLink name={j.name} />
                </td>
                <td class="wide">{j.after?.length ? <JobLinks names={j.after} /> : <code>{j.schedule}</code>}</td>
                <td>{j.when}</td>
                <td><Now job={j} /></td>
                <td>{j.last_outcome && <State of={j.last_outcome} />}</td>
                <td>
                  <Time at={j.last} tz={j.time_zone} />
                </td>
              </tr>
            ))}
          </Table>
        </>
      )}
    </>
  )
}

/** The jobs that are drawn: those that hang together with one that was searched for, and of too many those that are near. */
function choose(all: GraphJob[], q: string): GraphJob[] {
  const found = (j: GraphJob) => j.name.toLowerCase().includes(q)
  const names = new Set<string>()
  for (const part of components(all)) {
    if (!part.some(found)) continue
    const some = names.size + part.length > most ? nearest(part, part.filter(found), most - names.size) : part
    some.forEach((j) => names.add(j.name))
  }
  return all.filter((j) => names.has(j.name))
}

function Now({ job: j }: { job: GraphJob }) {
  if (j.open || j.paused) return <State of={j.open ? 'running' : 'paused'} />
  return (
    <span class="state idle">
      <Shape of="standby" />
      waits
    </span>
  )
}

function Picture({ nodes, q, there }: { nodes: Node[]; q: string; there: Set<string> }) {
  const by = new Map(nodes.map((n) => [n.name, n]))
  const width = Math.max(...nodes.map(left)) + size.width
  const height = Math.max(...nodes.map(top)) + size.height
  return (
    <div class="scroll graph" tabIndex={0} role="region" aria-label="which job follows which; the list below has the same">
      <div style={{ width: width + 'px', height: height + 'px' }}>
        <svg width={width} height={height} aria-hidden="true">
          <defs>
            <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
              <path d="M0 0 8 4 0 8z" />
            </marker>
          </defs>
          {nodes.flatMap((n) =>
            n.after.map((a) => {
              const from = by.get(a)!
              const [x1, y1, x2, y2] = [left(from) + size.width, top(from) + size.height / 2, left(n), top(n) + size.height / 2]
              return <path key={a + ' ' + n.name} class="edge" d={`M${x1} ${y1}C${x1 + 55} ${y1} ${x2 - 75} ${y2} ${x2 - 1} ${y2}`} marker-end="url(#tip)" />
            }),
          )}
          {nodes.map((n) => n.job?.when && (
            <text key={n.name} x={left(n) - 10} y={top(n) + size.height / 2 - 6} text-anchor="end">
              {n.after.length > 1 ? `all ${n.job.when}` : n.job.when}
            </text>
          ))}
        </svg>
        {nodes.map((n) =>
          n.job ? (
            <a key={n.name} class={q && n.name.toLowerCase().includes(q) ? 'box on' : 'box'} style={at(n)} href={href('jobs', n.name)} title={title(n.job)}>
              <b>{n.name}</b>
              <span>
                <Now job={n.job} />
                {n.job.last_outcome && <State of={n.job.last_outcome} />}
              </span>
            </a>
          ) : (
            <div key={n.name} class="box" style={at(n)}>
              <b>{n.name}</b>
              <span class="warn">{there.has(n.name) ? 'and more: search for it' : 'is not there any more'}</span>
            </div>
          ),
        )}
      </div>
    </div>
  )
}

const at = (n: Node) => ({ left: left(n) + 'px', top: top(n) + 'px', width: size.width + 'px', height: size.height + 'px' })
const title = (j: GraphJob) => `${j.name}: ${j.after?.length ? `after ${j.after.join(', ')}, when ${j.when}` : `${j.schedule} ${j.time_zone}`}`
