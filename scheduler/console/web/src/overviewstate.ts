// The overview is kept on every page, for the icon.
import { signal } from '@preact/signals'
import { get, locked } from './api'
import { hear } from './live'
import type { Overview } from './types'

export const overview = signal<Overview | null>(null)
export const overviewError = signal<Error | undefined>(undefined)

const [seenGap, hiddenGap] = [1500, 30_000]
let timer = 0
let free = 0

async function load() {
  const begun = Date.now()
  try {
    overview.value = (await get<Overview>('overview')).items
    overviewError.value = undefined
  } catch (e) {
    if (!locked.value) overviewError.value = e as Error
  }
  free = Date.now() + Math.max(document.hidden ? hiddenGap : seenGap, 3 * (Date.now() - begun))
}

locked.subscribe((yes) => {
  if (yes) overview.value = null
})

function later() {
  clearTimeout(timer)
  timer = window.setTimeout(load, Math.max(0, free - Date.now()))
}

hear(later)
setInterval(() => document.hidden && later(), hiddenGap)
