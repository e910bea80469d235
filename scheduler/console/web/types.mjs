// Writes src/types.ts: the schemas of ../../ops/http/openapi.json as TypeScript types.
import { readFileSync, writeFileSync } from 'node:fs'

const here = new URL('.', import.meta.url)
const { schemas } = JSON.parse(readFileSync(new URL('../../ops/http/openapi.json', here), 'utf8')).components

function type(s) {
  if (s.$ref) return s.$ref.split('/').pop()
  if (s.anyOf) return s.anyOf.map(type).join(' | ')
  if (s.allOf) return s.allOf.map(type).join(' & ')
  if (s.enum) return s.enum.map((v) => JSON.stringify(v)).join(' | ')
  switch (s.type) {
    case 'array': return `(${type(s.items)})[]`
    case 'object': if (s.properties) return `{ ${Object.entries(s.properties).map(([name, of]) => `${name}${s.required?.includes(name) ? '' : '?'}: ${type(of)}`).join('; ')} }`
      return s.additionalProperties ? `Record<string, ${type(s.additionalProperties)}>` : 'object'
    case 'integer': case 'number': return 'number'
    case 'string': case 'boolean': case 'null': return s.type
  }
  return 'unknown'
}

let text = '// Written by types.mjs from scheduler/ops/http/openapi.json. Do not edit.\n'
for (const [name, s] of Object.entries(schemas).sort()) {
  text += `\nexport interface ${name} {\n`
  for (const [field, of] of Object.entries(s.properties).sort()) {
    if (of.description) text += `  /** ${of.description} */\n`
    text += `  ${field}${s.required?.includes(field) ? '' : '?'}: ${type(of)}\n`
  }
  text += '}\n'
}
writeFileSync(new URL('src/types.ts', here), text)
