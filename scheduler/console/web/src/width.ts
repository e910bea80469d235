import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { RefObject } from 'preact'

/** The width of an element, px, as it is now. */
export function useWidth(): [RefObject<HTMLDivElement | null>, number] {
  const box = useRef<HTMLDivElement>(null)
  const [width, set] = useState(600)
  useLayoutEffect(() => {
    const measure = () => box.current && set(box.current.clientWidth)
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(box.current!)
    return () => observer.disconnect()
  }, [])
  return [box, width]
}
