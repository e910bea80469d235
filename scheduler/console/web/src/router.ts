// Places are behind the address's "#": they work under any base path, and a reload finds the page.
import { signal } from '@preact/signals'

export interface Route {
  page: string
  name: string
  query: URLSearchParams
}

function parse(): Route {
  const [path = '', q = ''] = location.hash.replace(/^#\/?/, '').split('?')
  const [page = '', name = ''] = path.split('/')
  let decoded = name
  try {
    decoded = decodeURIComponent(name)
  } catch {
    // a broken address: show it as it is
  }
  return { page: page || 'overview', name: decoded, query: new URLSearchParams(q) }
}

export const route = signal(parse())
addEventListener('hashchange', () => {
  route.value = parse()
})

export function href(page: string, name = '', query: Record<string, string> = {}): string {
  const q = new URLSearchParams(query).toString()
  return '#/' + page + (name && '/' + encodeURIComponent(name)) + (q && '?' + q)
}

/** Changes a part of the place without a step in the history. */
export function setQuery(name: string, value: string) {
  const r = route.value
  const query = new URLSearchParams(r.query)
  if (value) query.set(name, value)
  else query.delete(name)
  history.replaceState(null, '', href(r.page, r.name, Object.fromEntries(query)))
  route.value = { ...r, query }
}
