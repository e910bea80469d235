// Jobs that follow others, in layers from left to right: each stands right of all that it follows.
import type { GraphJob } from './types'

export interface Node {
  name: string
  job?: GraphJob // none for one that others follow and that is not among the jobs
  after: string[]
  layer: number
  row: number
  circle: boolean // it waits for itself
}

/** The jobs next to each, on both sides. */
function neighbours(jobs: GraphJob[]): Map<string, string[]> {
  const near = new Map<string, string[]>()
  const add = (a: string, b: string) => {
    const of = near.get(a)
    if (of) of.push(b)
    else near.set(a, [b])
  }
  for (const j of jobs)
    for (const a of j.after ?? []) {
      add(j.name, a)
      add(a, j.name)
    }
  return near
}

/** Jobs from some on, those next to them first, and so many at most. */
export function nearest(jobs: GraphJob[], from: GraphJob[], most: number): GraphJob[] {
  const near = neighbours(jobs)
  const seen = new Set(from.map((j) => j.name))
  for (const name of seen) for (const other of near.get(name) ?? []) seen.add(other)
  const by = new Map(jobs.map((j) => [j.name, j]))
  return [...seen].flatMap((name) => by.get(name) ?? []).slice(0, most)
}

/** The parts that hang together. */
export function components(jobs: GraphJob[]): GraphJob[][] {
  const near = neighbours(jobs)
  const by = new Map(jobs.map((j) => [j.name, j]))
  const done = new Set<string>()
  const parts: GraphJob[][] = []
  for (const j of jobs) {
    if (done.has(j.name)) continue
    const part = new Set([j.name])
    for (const name of part) for (const other of near.get(name) ?? []) part.add(other)
    part.forEach((name) => done.add(name))
    parts.push([...part].flatMap((name) => by.get(name) ?? []))
  }
  return parts
}

/** The layer of a node. A node that waits for itself counts for nothing while its own layer is looked for, so that a circle has a first node. */
function layerOf(n: Node, nodes: Map<string, Node>, path: Node[] = []): number {
  if (n.layer < 0 && !path.includes(n)) n.layer = 1 + Math.max(-1, ...n.after.map((a) => layerOf(nodes.get(a)!, nodes, [...path, n])))
  return n.layer
}

function inCircle(n: Node, nodes: Map<string, Node>): boolean {
  const before = new Set(n.after)
  for (const name of before) nodes.get(name)!.after.forEach((a) => before.add(a))
  return before.has(n.name)
}

/** The places of jobs, part below part. A job stands as high as those that it follows, where there is room. */
export function placed(jobs: GraphJob[]): Node[] {
  const all: Node[] = []
  let first = 0 // row of the part
  for (const part of components(jobs)) {
    const nodes = new Map<string, Node>()
    for (const j of part) {
      nodes.set(j.name, { name: j.name, job: j, after: j.after ?? [], layer: -1, row: 0, circle: false })
      for (const a of j.after ?? []) if (!nodes.has(a) && !part.some((o) => o.name === a)) nodes.set(a, { name: a, after: [], layer: 0, row: 0, circle: false })
    }
    const layers: Node[][] = []
    for (const n of nodes.values()) {
      ;(layers[layerOf(n, nodes)] ??= []).push(n)
      n.circle = inCircle(n, nodes)
    }
    let last = first
    for (const layer of layers) {
      const barycenter = (n: Node) => n.after.reduce((sum, a) => sum + nodes.get(a)!.row, 0) / (n.after.length || 1) || first
      layer.sort((a, b) => barycenter(a) - barycenter(b))
      let free = first
      for (const n of layer) {
        n.row = Math.max(free, n.after.length ? barycenter(n) : free)
        free = n.row + 1
      }
      last = Math.max(last, free)
    }
    all.push(...nodes.values())
    first = last + 0.4
  }
  return all
}
