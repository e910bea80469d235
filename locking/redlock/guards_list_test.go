package redlock

import (
	"fmt"
	"strings"
	"time"
)

func topupGuards() []guard {
	return []guard{
		{"not over another's", "topup", "holder ~= owner or revoked or", "revoked or", "0", func(b *bench) string {
			b.acquire("A", 1, 100, 1)
			return b.topup("B", 200)
		}},
		{"not over a revocation", "topup", "holder ~= owner or revoked or", "holder ~= owner or", "0", func(b *bench) string {
			b.acquire("A", 1, 100, 1)
			b.revoke(100)
			return b.topup("A", 100)
		}},
		{"not where it was given back", "topup", "last[4] == owner or ", "", "0", func(b *bench) string {
			b.acquire("A", 1, 100, 1)
			b.release("A")
			return b.topup("A", 100)
		}},
		{"not where it was given back unseen", "topup", " or last[5] == owner", "", "0", func(b *bench) string {
			b.release("A")
			return b.topup("A", 100)
		}},
		{"not behind another grant", "topup", "if since(last[3], last[6]) then return 0 end", "", "0", func(b *bench) string {
			b.acquire("B", 1, 100, 1)
			b.lapse()
			return b.topup("A", 50)
		}},
		{"a confirmed token is a grant's", "confirm", "redis.call('HSET', state, 'gt', digits(token))", "", "0", func(b *bench) string {
			b.acquire("B", 1, 100, 1)
			b.confirm("B", 200)
			b.lapse()
			return b.topup("A", 150)
		}},
		{"a promised token may be a grant's", "acquire", "redis.call('HSET', state, 'gt', digits(token))", "", "0", func(b *bench) string {
			b.acquire("B", 1, 100, 1)
			b.lapse()
			return b.topup("A", 50)
		}},
		{"a request that is withdrawn is none", "release", "redis.call('HSET', state, 'g', redis.call", "redis.call('HSET', state, 'x', redis.call", "1", func(b *bench) string {
			b.acquire("H", 1, 100, 1)
			b.lapse()
			b.acquire("S", 2, 200, 1)
			b.withdraw("S", 2)
			return b.topup("H", 100)
		}},
		{"what was before it counts again", "acquire", "if last[4] ~= owner then", "if false then", "0", func(b *bench) string {
			b.acquire("H", 1, 100, 1)
			b.lapse()
			b.acquire("S", 2, 200, 1)
			b.withdraw("S", 2)
			return b.topup("O", 50)
		}},
		{"not behind another grant and a late request", "topup", "if since(last[7], last[8]) then return 0 end", "", "0", func(b *bench) string {
			b.acquire("B", 1, 100, 1)
			b.release("B")
			b.acquire("A", 1, 200, 1)
			return b.topup("A", 50)
		}},
		{"a state from before a restart says nothing", "topup", "last[2] == rid and ", "", "1", func(b *bench) string {
			b.acquire("B", 1, 100, 1)
			b.lapse()
			b.server.SetRunID("another")
			b.repair(0)
			return b.topup("A", 50)
		}},
		{"not taken back with an earlier request", "topup", "value_of(token, number, owner)", "value_of(token, attempt, owner)", "100:5:A", func(b *bench) string {
			b.topupAs("A", 100, 5)
			b.withdraw("A", 4)
			return b.lock()
		}},
		{"not over a later request", "topup", " or attempt > number", "", "200:9:A", func(b *bench) string {
			b.acquire("A", 9, 200, 1)
			b.topupAs("A", 100, 5)
			return b.lock()
		}},
		{"only where it votes", "topup", "if not votes(rid) then return 0 end", "", "0", func(b *bench) string {
			b.server.SetRunID("another")
			return b.topup("A", 100)
		}},
		{"the counter stays", "topup", "math.max(c, token)", "token", "1 151", func(b *bench) string {
			b.acquire("A", 1, 150, 1)
			b.topup("A", 100)
			b.lapse()
			return b.acquire("B", 2, 0, 1)
		}},
	}
}

func tokenGuards() []guard {
	hour := time.Hour.Microseconds()
	return []guard{
		{"confirm: the counter stays", "confirm", "math.max(counter(last[1], last[2], rid), token)", "token", "1 151", func(b *bench) string {
			b.acquire("A", 1, 150, 1)
			b.topupAs("A", 100, 1)
			b.confirm("A", 110)
			b.lapse()
			return b.acquire("B", 2, 0, 1)
		}},
		{"confirm: the owner", "confirm", "holder ~= owner or ", "", "0", func(b *bench) string {
			b.acquire("A", 1, 100, 1)
			return b.confirm("B", 200)
		}},
		{"confirm: a revocation", "confirm", " or revoked", "", "0", func(b *bench) string {
			b.acquire("A", 1, 100, 1)
			b.revoke(100)
			return b.confirm("A", 100)
		}},
		{"confirm: the promise", "confirm", " or own > token", "", "0", func(b *bench) string {
			b.acquire("A", 1, 100, 1)
			return b.confirm("A", 50)
		}},
		{"confirm: a later attempt", "confirm", " or attempt > number", "", "0", func(b *bench) string {
			b.acquire("A", 6, 100, 1)
			return b.confirm("A", 200)
		}},
		{"confirm: the vote", "confirm", "if not votes(rid) then return 0 end", "", "0", func(b *bench) string {
			b.acquire("A", 1, 100, 1)
			b.server.SetRunID("another")
			return b.confirm("A", 100)
		}},
		{"acquire: no clock is followed far", "acquire", "math.min(clock, now + hour)", "clock", "true", func(b *bench) string {
			now := time.Now().UnixMicro()
			var code, token int64
			_, _ = fmt.Sscan(b.acquire("A", 1, int(now+2*hour), 1), &code, &token)
			return fmt.Sprint(token <= now+hour+time.Minute.Microseconds())
		}},
		{"acquire: the clock is followed", "acquire", "math.min(clock, now + hour)", "0", "1 100", func(b *bench) string { return b.acquire("A", 1, 100, 1) }},
		{"acquire: tokens grow", "acquire", "counter(last[1], last[2], rid) + 1", "0", "1 101", func(b *bench) string {
			b.acquire("A", 1, 100, 1)
			b.lapse()
			return b.acquire("B", 2, 50, 1)
		}},
		{"a state from before a restart is no proof", "head", "if r ~= rid then c = math.max", "if false then c = math.max", "1 501", func(b *bench) string {
			b.acquire("A", 1, 100, 1)
			b.lapse()
			b.server.SetRunID("another")
			b.repair(500)
			return b.acquire("B", 2, 0, 1)
		}},
		{"the node's largest stays", "head", "if c > (tonumber(redis.call('HGET', node, 'h') or 0) or 0) then", "if true then", "500", func(b *bench) string {
			b.server.SetRunID("another")
			b.repair(500)
			b.server.Mini().HSet(b.keys()[1], "t", "5", "r", "another")
			b.acquire("A", 1, 0, 1)
			return b.node("h")
		}},
	}
}

func holdGuards() []guard {
	return []guard{
		{"withdraw: not a later attempt", "release", "if holder == owner and attempt > upto then return 0 end", "", "5:A", func(b *bench) string {
			b.acquire("A", 5, 100, 1)
			b.withdraw("A", 4)
			return strings.TrimPrefix(b.lock(), "100:")
		}},
		{"withdraw: not another's", "release", "local mine = value and holder == owner", "local mine = value", "5:A", func(b *bench) string {
			b.acquire("A", 5, 100, 1)
			b.withdraw("B", 9)
			return strings.TrimPrefix(b.lock(), "100:")
		}},
		{"acquire: a later attempt is noted", "acquire", "math.max(stamp, attempt)", "stamp", "9:A", func(b *bench) string {
			b.acquire("A", 5, 100, 1)
			b.acquire("A", 9, 100, 1)
			return strings.TrimPrefix(b.lock(), "100:")
		}},
		{"acquire: a late copy is not", "acquire", "math.max(stamp, attempt)", "attempt", "9:A", func(b *bench) string {
			b.acquire("A", 9, 100, 1)
			b.acquire("A", 5, 100, 1)
			return strings.TrimPrefix(b.lock(), "100:")
		}},
		{"acquire: what was given back stays so", "acquire", "if last[3] == owner then return answer(2, '', 0) end", "", "2 0", func(b *bench) string {
			b.acquire("A", 1, 100, 1)
			b.release("A")
			return b.acquire("A", 1, 100, 1)
		}},
		{"acquire: a revocation stays", "acquire", "holder == owner and not revoked then", "holder == owner then", "-100:1:A", func(b *bench) string {
			b.acquire("A", 1, 100, 1)
			b.revoke(100)
			b.acquire("A", 2, 100, 1)
			return b.lock()
		}},
		{"revoke: may be repeated", "revoke", "if not revoked then", "if true then", "-100:1:A", func(b *bench) string {
			b.acquire("A", 1, 100, 1)
			b.revoke(100)
			b.revoke(100)
			return b.lock()
		}},
		{"revoke: the token", "revoke", " or token ~= tonumber(ARGV[1])", "", "0", func(b *bench) string {
			b.acquire("A", 1, 100, 1)
			return b.revoke(50)
		}},
		{"renew: the owner", "renew", "if holder ~= owner then return 0 end", "", "0", func(b *bench) string {
			b.acquire("A", 1, 100, 1)
			return b.renew("B", 100)
		}},
		{"renew: the token", "renew", "if own ~= token then return 2 end", "", "2", func(b *bench) string {
			b.acquire("A", 1, 100, 1)
			return b.renew("A", 50)
		}},
		{"renew: a revocation", "renew", "if revoked then return 3 end", "", "3", func(b *bench) string {
			b.acquire("A", 1, 100, 1)
			b.revoke(100)
			return b.renew("A", 100)
		}},
		{"release: who gave back is known", "release", "mine and 'o' or 'u', owner", "'u', owner", "1", func(b *bench) string {
			b.acquire("A", 1, 100, 1)
			b.release("A")
			return b.release("A")
		}},
	}
}

func nodeGuards() []guard {
	return []guard{
		{"the longest ttl is noted", "acquire", "redis.call('HSET', node, 'm', digits(longest))", "", "90000", func(b *bench) string {
			b.acquire("A", 1, 100, 90000)
			return b.node("m")
		}},
		{"the longest ttl stays", "acquire", "if tonumber(known[2] or 0) < longest then", "if true then", "60000", func(b *bench) string {
			b.acquire("A", 1, 100, 1000)
			return b.node("m")
		}},
		{"the longest ttl is told", "acquire", "  longest = tonumber(known[2])", "", "60000", func(b *bench) string {
			reply := strings.Fields(b.run("acquire", b.keys(), "A", 60000, 1, 100, 0, 0, "who", stateKeep, 1000))
			return reply[len(reply)-2]
		}},
		{"repair: what votes is left alone", "repair", "if known[1] == rid then return 1 end", "", "", func(b *bench) string {
			b.repair(500)
			return b.node("h")
		}},
		{"repair: the largest token stays", "repair", "if (tonumber(known[2] or 0) or 0) < tonumber(floor) then", "if true then", "100", func(b *bench) string {
			b.acquire("A", 1, 100, 1)
			b.server.SetRunID("another")
			b.repair(50)
			return b.node("h")
		}},
		{"repair: the longest ttl stays", "repair", "if (tonumber(known[3] or 0) or 0) < tonumber(longest) then", "if true then", "90000", func(b *bench) string {
			b.acquire("A", 1, 100, 90000)
			b.server.SetRunID("another")
			b.repair(0)
			return b.node("m")
		}},
		{"repair: the run that was meant", "repair", "if rid ~= ARGV[1] then return 0 end", "", "0", func(b *bench) string {
			b.server.SetRunID("another")
			return b.run("repair", b.keys()[2:], "a third", 0, -1, 60000)
		}},
		{"repair: not too early", "repair", "if left > 0 then return -left end", "", "true", func(b *bench) string {
			b.server.SetRunID("another")
			return fmt.Sprint(strings.HasPrefix(b.run("repair", b.keys()[2:], "another", 0, 1000, 60000), "-"))
		}},
		{"repair: each loss has its own time", "repair", "if of ~= rid then", "if not of then", "-1000", func(b *bench) string {
			b.server.Mini().HSet(b.keys()[2], "q", "1:before")
			b.server.SetRunID("another")
			return b.run("repair", b.keys()[2:], "another", 0, 1000, 60000)
		}},
		{"repair: the loss is over", "repair", "redis.call('HDEL', node, 'q')", "", "", func(b *bench) string {
			b.server.SetRunID("another")
			b.acquire("A", 1, 100, 1)
			b.repair(0)
			return b.node("q")
		}},
		{"acquire: each loss has its own time", "acquire", "if of ~= rid then", "if not of then", "0]", func(b *bench) string {
			b.server.Mini().HSet(b.keys()[2], "q", "1:before")
			b.server.SetRunID("another")
			reply := strings.Fields(b.run("acquire", b.keys(), "A", 60000, 1, 100, 0, 0, "who", stateKeep, 1000))
			return reply[len(reply)-1]
		}},
	}
}
