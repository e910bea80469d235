import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { clock, duration, full, short, zoneFor } from './time'
import type { RunView } from './types'

const quantile = (sorted: number[], q: number) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0

/** How long the latest runs took, and how late they began. */
export function Durations({ runs, tz }: { runs: RunView[]; tz: string }) {
  const ran = runs.filter((r) => r.started && r.ended && !r.of && r.tick).reverse()
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const data: uPlot.AlignedData = [ran.map((r) => Date.parse(r.tick!) / 1000), ran.map((r) => r.duration_ms / 1000), ran.map((r) => Math.max(0, r.lag_ms) / 1000)]
  const z = zoneFor(tz)
  const dark = matchMedia('(prefers-color-scheme: dark)')
  useEffect(() => {
    const make = () => {
      plot.current?.destroy()
      const style = getComputedStyle(document.documentElement)
      const colour = (name: string) => style.getPropertyValue(name).trim()
      const axis = { stroke: colour('--dim'), grid: { stroke: colour('--line'), width: 1 }, ticks: { stroke: colour('--line'), width: 1 }, font: '11px system-ui' }
      plot.current = new uPlot(
        {
          width: box.current!.clientWidth, height: 170, tzDate: (s) => (z ? uPlot.tzDate(new Date(s * 1000), z) : new Date(s * 1000)), legend: { live: true },
          cursor: { y: false }, scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
          axes: [{ ...axis, space: 70, values: (_, at) => at.map((v) => (at.at(-1)! - at[0]! < 600 ? short(v * 1000, z) : clock(v * 1000, z))) }, { ...axis, size: 60, values: (_, at) => at.map((v) => duration(Math.round(v * 1000))) }],
          series: [
            { label: 'tick', value: (_, v) => (v === null ? '–' : full(v * 1000, z)) },
            { label: 'took', stroke: colour('--accent'), width: 1.5, points: { size: 4 }, value: (_, v) => (v === null ? '–' : duration(Math.round(v * 1000))) },
            { label: 'began late by', stroke: colour('--warn'), dash: [4, 4], width: 1.5, points: { show: false }, value: (_, v) => (v === null ? '–' : duration(Math.round(v * 1000))) },
          ],
        },
        data, box.current!,
      )
    }
    make()
    const resize = new ResizeObserver(() => box.current && plot.current?.setSize({ width: box.current.clientWidth, height: 170 }))
    resize.observe(box.current!)
    dark.addEventListener('change', make)
    return () => {
      resize.disconnect()
      dark.removeEventListener('change', make)
      plot.current?.destroy()
      plot.current = null
    }
  }, [z])
  useEffect(() => plot.current?.setData(data))
  const sorted = ran.map((r) => r.duration_ms).sort((a, b) => a - b)
  const text = ran.length ? `${ran.length} ${ran.length === 1 ? 'run' : 'runs'}: half took at most ${duration(quantile(sorted, 0.5))}, 19 of 20 at most ${duration(quantile(sorted, 0.95))}` : 'no run has ended yet'
  return (
    <>
      <p class="dim">{text}.</p>
      <div ref={box} class={ran.length > 1 ? 'plot' : 'plot few'} role="img" aria-label={`durations of ${text}`} />
    </>
  )
}
