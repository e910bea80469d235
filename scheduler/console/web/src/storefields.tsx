// The inputs for the settings of a stored job.
import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import { never, useGet } from './query'
import type { Values } from './stored'
import type { HandlerView } from './types'

/** The inputs, which begin with some values. named is the handler that is chosen now, wrong has what to say at each input. */
export function Fields({ name, begun, named, wrong }: { name: string; begun: Values; named: string; wrong: Record<string, string> }) {
  const handlers = useGet<HandlerView[]>('handlers', { when: never })
  const zones = useMemo(() => <datalist id="zones">{Intl.supportedValuesOf('timeZone').map((z) => <option key={z} value={z} />)}</datalist>, [])
  const declared = (handlers.items ?? []).map((h) => h.name)
  const shape = handlers.items?.find((h) => h.name === named)?.shape
  const text = (key: string, words: ComponentChildren, o: object = {}) => (
    <Part key={key} name={key} label={words} fault={wrong[key]}>
      {(is) => <input name={key} defaultValue={begun[key]} autoComplete="off" spellcheck={false} {...is} {...o} />}
    </Part>
  )
  const area = (key: string, words: ComponentChildren) => (
    <Part name={key} label={words} fault={wrong[key]}>
      {(is) => (
        <textarea name={key} rows={Math.min(10, Math.max(3, begun[key]!.split('\n').length))} spellcheck={false} defaultValue={begun[key]} {...is} />
      )}
    </Part>
  )
  const choice = (key: string, words: ComponentChildren, of: string[], none = 'default') => (
    <Part name={key} label={words} fault={wrong[key]}>
      {(is) => (
        <select name={key} required={none === ''} {...is}>
          {of.map((w) => (
            <option key={w} value={w} selected={w === begun[key]}>
              {w || none}
            </option>
          ))}
        </select>
      )}
    </Part>
  )
  return (
    <>
      <fieldset>
        <legend>What</legend>
        {!name && text('name', 'Name', { required: true, maxLength: 128, pattern: '[a-zA-Z0-9][a-zA-Z0-9._:\\/\\-]*', title: '1 to 128 letters, digits and . _ : / -, the first a letter or digit' })}
        {choice('handler', <>Handler <small>that its runs call; nodes declare them</small></>, [...new Set([begun.handler!, ...declared])], '')}
        {handlers.items?.length === 0 && <p class="note warn">No node has declared a handler yet; handlers in config.yaml, or Registry.Handle, make some.</p>}
        {area('payload', <>Payload <small>JSON that each run gets{shape ? `, such as ${like(shape)}` : ''}</small></>)}
      </fieldset>
      <fieldset>
        <legend>How</legend>
        <div class="pair">
          {text('timeout', <>Timeout <small>such as 10m; empty: none</small></>)}
          {text('retries', <>Retries <small>of a try that fails</small></>, { inputMode: 'numeric', type: 'number', min: 0, max: 100 })}
          {choice('overlap', 'Overlap', ['', 'skip', 'queue', 'replace', 'allow'])}
          {choice('catch_up', 'Catch up', ['', 'latest', 'all', 'none'])}
        </div>
        {area('more', <>More settings <small>JSON, as PUT api/v1/jobs takes them</small></>)}
      </fieldset>
      <fieldset>
        <legend>When</legend>
        {text('schedule', <>Schedule <small>such as 30 2 * * * or @every 90s</small></>)}
        {text('time_zone', 'Time zone', { list: 'zones' })}
        {zones}
        {text('after', <>Or after jobs <small>in place of a schedule</small></>)}
        {choice('when', <>… when they <small>all</small></>, ['', 'succeeded', 'failed', 'any'])}
        {text('except', <>Except on <small>dates, and ranges such as 2026-12-24..2027-01-02</small></>)}
        {text('only', <>Only on <small>dates and ranges</small></>)}
      </fieldset>
    </>
  )
}

/** An input with its label, and below it what is wrong. */
function Part({ name, label, fault, children }: { name: string; label: ComponentChildren; fault?: string; children: (is: object) => ComponentChildren }) {
  return (
    <div>
      <label>
        {label}
        {children(fault ? { 'aria-invalid': true, 'aria-describedby': 'fault-' + name } : {})}
      </label>
      {fault && (
        <p class="bad" id={'fault-' + name}>
          {fault}
        </p>
      )}
    </div>
  )
}

/** A shape of payloads in a few words. */
function like(shape: string): string {
  try {
    const s = JSON.parse(shape) as { fields?: Record<string, unknown> } | string
    return typeof s === 'object' && s.fields ? `{${Object.entries(s.fields).map(([k, v]) => `"${k}": ${typeof v === 'string' ? v : '…'}`).join(', ')}}` : typeof s === 'string' ? s : shape
  } catch {
    return shape
  }
}
