// A list or a thing of the API, kept up to date while it is shown.
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, get, tooMany, type Page } from './api'
import { hear, paused, type Change } from './live'

export interface Result<T> extends Partial<Page<T>> {
  error?: ApiError | Error
  reload: () => void
}

interface Options {
  /** Whether a change makes the answer old. Default: each does. */
  when?: (c: Change) => boolean
  /** Least time between two requests, ms. */
  gap?: number
}

/** Asks for a path, and again when something changes: at once, but not more often than the answers come. null asks for nothing. */
export function useGet<T>(path: string | null, { when, gap = 300 }: Options = {}): Result<T> {
  const [result, set] = useState<{ path: string; page?: Page<T>; error?: Error }>({ path: '' })
  const latest = useRef({ when, reload: () => {} })
  latest.current.when = when
  useEffect(() => {
    if (path === null) return
    const abort = new AbortController()
    let timer = 0
    let busy = false
    let again = false
    let wanted = false // by the page, and not because something has changed: also while the page is held still
    let free = 0 // when the next request may go, ms
    const load = async () => {
      clearTimeout(timer)
      busy = true
      again = wanted = false
      const begun = Date.now()
      try {
        const page = await get<T>(path, abort.signal)
        if (!abort.signal.aborted) set({ path, page })
      } catch (e) {
        if (e instanceof ApiError && e.code === tooMany) again = wanted = true
        if (!abort.signal.aborted) set((was) => ({ path, page: was.path === path && !(e instanceof ApiError && e.status === 404) ? was.page : undefined, error: e as Error }))
      }
      busy = false
      free = Date.now() + Math.max(gap, 3 * (Date.now() - begun))
      if (again) later()
    }
    const later = () => {
      clearTimeout(timer)
      if (busy) again = true
      else timer = window.setTimeout(() => (!paused.value || wanted) && void load(), Math.max(0, free - Date.now()))
    }
    latest.current.reload = () => {
      wanted = true
      later()
    }
    void load()
    const stop = hear((c) => {
      if (c.name === 'gap' || c.name === 'poll' || !latest.current.when || latest.current.when(c)) later()
    })
    return () => {
      abort.abort()
      clearTimeout(timer)
      stop()
    }
  }, [path, gap])
  return { ...result.page, error: result.error, reload: () => latest.current.reload() }
}

export const onRuns = (c: Change) => c.name === 'runs'
export const onNodes = (c: Change) => c.name === 'nodes'
export const never = () => false
export const onJob = (job: string) => (c: Change) => c.name === 'runs' && c.runs.some((r) => r.job === job)
