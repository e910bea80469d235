//go:build !race

package ledger

import "testing"

// shardMutants are broken in what they do with sharded ticks.
var shardMutants = []mutant{
	{"a tick is closed one shard early", "P2", []edit{{"prelude", `if t.left ~= '0' then`, `if tonumber(t.left) > 1 then`}}},
	{"a tick is never closed", "model", []edit{{"prelude", `if t.left ~= '0' then`, `if true then`}}},
	{"the worst outcome is the last", "P2", []edit{{"prelude", `if WORST[outcome] > (WORST[t.worst] or 0) then t.worst = outcome end`, `t.worst = outcome`}}},
	{"the shards that did not succeed are not counted", "model", []edit{{"prelude", `if outcome ~= 'succeeded' then t.bad = int(t.bad + 1) end`, ``}}},
	{"a shard's crash counts as its end", "P2", []edit{{"prelude", `  elseif r.of ~= '' then
    part(`, `  end
  if r.of ~= '' then
    part(`}}},
	{"a shard's next attempt is of no tick", "P2", []edit{{"prelude", `holds = '1', of = r.of,`, `holds = '1', of = '',`}}},
	{"a shard handed back is of no tick", "P2", []edit{{"unclaim", `r.at, r.holds = int(ms), '1'`, `r.at, r.holds, r.of = int(ms), '1', ''`}}},
	{"opening forgets the parameters", "model", []edit{{"prelude", `p.shard, p.param = int(shard), param[shard + 1] or ''`, `p.shard, p.param = int(shard), ''`}}},
	{"opening forgets the step", "P2", []edit{{"claim", `attempt = attempt, prev = tick, next = nxt, trigger = trigger, request = '', payload = ''}, ms)`, `attempt = attempt, prev = '', next = nxt, trigger = trigger, request = '', payload = ''}, ms)`}}},
	{"the last shard is not opened", "P2", []edit{{"prelude", `for shard = 0, n - 1 do`, `for shard = 0, n - 2 do`}}},
	{"what was opened stays pending", "index", []edit{{"prelude", `  redis.call('ZREM', k.pending, id)
`, ``}}},
	{"the cancelling of a tick does not reach what waits", "model", []edit{{"claim", `local flag = wanted(cancels, id, p)`, `local flag = redis.call('HGET', cancels, id)`}}},
	{"the cancelling of a tick does not end its attempts", "model", []edit{{"prelude", `and not wanted(k.cancels, id, r)`, `and redis.call('HEXISTS', k.cancels, id) == 0`}}},
	{"a cancelled shard is not counted off", "P2", []edit{{"cancel", `if p.of ~= '' then`, `if false then`}}},
	{"a wish outlives its tick", "model", []edit{{"prelude", `  redis.call('HDEL', k.waiting, id)
  redis.call('HDEL', k.cancels, id)
end`, `  redis.call('HDEL', k.waiting, id)
end`}}},
	{"a pause holds shards", "model", []edit{{"claim", `local flag = wanted(cancels, id, p)`, `if paused(e, ms) then answer(i, 'held', '', 'a pause', '') return nil end
  local flag = wanted(cancels, id, p)`}}},
	{"the second opener opens again", "P2", []edit{{"claim", `if t and t.tick == tick then opened(i, e, e.open) return false end`, `if t and t.tick == tick then
      open_tick(k, e, id, mode, parts, {job = job, tick = tick, attempt = t.attempt, prev = tick, next = nxt, trigger = trigger, request = '', payload = ''}, ms)
      return opened(i, e, id)
    end`}}},
	{"the second opener is told to plan anew", "model", []edit{{"claim", `if t and t.tick == tick then`, `if false then`}}},
	{"the holder is freed by the first shard", "P1", []edit{{"prelude", `    redis.call('HSET', k.waiting, id, tick_text(t))`, `    redis.call('HSET', k.waiting, id, tick_text(t))
    if e.open == id then e.open = '' end`}}},
	{"an open tick does not hold the job", "model", []edit{{"prelude", `  elseif e.open ~= id then -- else the time`, `  elseif false then -- else the time`}}},
	{"a tick that closes goes on holding the job", "model", []edit{{"prelude", `    e.open = ''
    free(`, `    free(`}}},
	{"a tick is busy for as long as the lease of the shard that closes it", "model", []edit{{"reap", `local freed = r.of == '' and tonumber(r.until_) or ms`, `local freed = tonumber(r.until_)`}}},
	{"the busy time begins anew with the tick that is opened", "model", []edit{{"prelude", `  elseif e.open ~= id then -- else the time`, `  else -- else the time`}}},
	{"an open tick is not replaced", "model", []edit{{"claim", `or tick_of(redis.call('HGET', KEYS[6], e.open)))
  if going`, `or false)
  if going`}}},
	{"ticks that wait behind an open one are late", "model", []edit{{"claim", `or tick_of(redis.call('HGET', KEYS[6], e.open))
  return r and`, `
  return r and`}}},
	{"a shard asked for again is not known", "P6", []edit{{"claim", ` and mode ~= 'a' and kind ~= 's' then`, ` and mode ~= 'a' then`}}},
	{"a shard goes without the payload", "model", []edit{{"claim", `return t and t.payload or ''`, `return ''`}}},
	{"a tick's payload is not kept", "model", []edit{{"prelude", `if t.payload ~= '' then redis.call('HSET', k.kept, 'p:' .. id, t.payload) end`, ``}}},
	{"an open tick's payload is not repeated", "model", []edit{{"rerun", `return t and t.payload or redis`, `return redis`}}},
	{"a tick's end is not told to those who follow", "model", []edit{{"prelude", `  tell_end(k, history, t, t.worst, ms)`, ``}}},
	{"a shard's end is told to those who follow", "model", []edit{{"prelude", `elseif r.shards == '1' then -- not`, `else -- not`}}},
	{"a tick repeated counts one shard's attempts", "model", []edit{{"rerun", `local mine = whole or s == shard`, `local mine = s == shard`}}},
	{"a tick by hand, repeated, does not count its shards' attempts", "model", []edit{{"rerun", `if kind == 'T' then attempt = top end`, ``}}},
	{"a tick forgets how many attempts its shards had", "model", []edit{{"prelude", `int(math.max(t.top, r.attempt))`, `t.top`}}},
	{"a shard is repeated beside its tick", "model", []edit{{"rerun", ` or r.shards == '1') and`, `) and`}}},
	{"shards are stranded by another policy", "model", []edit{{"claim", `e.open ~= '' and e.open ~= p.of and not dangling(e) then`, `e.open ~= p.of then`}}},
	{"a tick opened beside others never holds", "model", []edit{{"claim", `if mode ~= 'a' and e.open == '' then e.open, e.busy = of, '' end`, ``}}},
	{"shards end in a tick that cannot be read", "model", []edit{{"prelude", `if strange(k.waiting, r.of) then return false end`, ``}}},
	{"a removed job's open tick stays wanted", "model", []edit{{"remove", `redis.call('HDEL', KEYS[11], all[i - 1])`, ``}}},
	{"a removed job's open tick stays", "model", []edit{{"remove", `local p = pending_of(all[i]) or tick_of(all[i])`, `local p = pending_of(all[i])`}}},
}

// TestShardMutants: the same as TestMutants, in a world in which most jobs have shards.
func TestShardMutants(t *testing.T) {
	for _, m := range shardMutants {
		t.Run(m.name, func(t *testing.T) { m.hunt(t, func(tr *trace) { tr.world.sharded = true }) })
	}
}
