//go:build mutants

package schedtest_test

import (
	"slices"

	"github.com/escapement/escapement/scheduler/schedtest/verify"
)

// Files that are broken.
const (
	claimLua   = "scheduler/ledger/scripts/claim.lua"
	settleLua  = "scheduler/ledger/scripts/settle.lua"
	defineLua  = "scheduler/ledger/scripts/define.lua"
	reapLua    = "scheduler/ledger/scripts/reap.lua"
	preludeLua = "scheduler/ledger/scripts/prelude.lua"
	tokenLua   = "locking/redisconn/token.lua"
	senderGo   = "scheduler/sender.go"
	runnerGo   = "scheduler/runner.go"
	tryGo      = "scheduler/try.go"
	endGo      = "scheduler/end.go"
	sweepGo    = "scheduler/sweep.go"
	engineGo   = "scheduler/engine.go"
	clockGo    = "scheduler/clock.go"
	planGo     = "scheduler/plan.go"
	verdictGo  = "scheduler/verdict.go"
	renewGo    = "locking/renew.go"
)

func mutants() []mutant {
	return slices.Concat(claims, leases, tokens, clocks, ends, engines, definitions, policies, split, lostWrites, quiets, locks, programs, hints, tools)
}

// What makes a claim safe: the cursor, the run id, the digest.
var claims = []mutant{
	{name: "a claim does not compare the cursor", caught: verify.KindDouble, edits: []edit{
		{claimLua, `if e.cursor ~= from or from == '' then`, `if from == '' then`}}},
	{name: "any definition is granted", plan: "one is newer", caught: older, edits: []edit{
		{claimLua, `if e.digest ~= digest then`, `if false then`}}},
	{name: "the end of a run moves the cursor without comparing it", plan: "healthy", caught: verify.KindContradiction, edits: []edit{
		{settleLua, `    gone[id] = true`, "    gone[id] = true\n    if r.next ~= '' then e.cursor = r.next redis.call('ZADD', string.gsub(KEYS[1], 'jobs$', 'due'), r.next, job) end"}}},
	{name: "go-redis repeats a claim that Redis does not know again", plan: "lost reply", caught: unstarted, edits: []edit{
		{"locking/redisconn/check.go", `if retries > 0 {`, `if retries > 99 {`},
		{"scheduler/schedtest/process.go", `o.PoolSize = 256`, `o.PoolSize, o.MaxRetries = 256, 1`},
		{claimLua, `if e.open ~= id and mode ~= 'a' and kind ~= 's' then return false end`, `if true then return false end`}}},
	{name: "a claim asked again is not known", plan: "lost reply", caught: unstarted, edits: []edit{
		{claimLua, `if e.open ~= id and mode ~= 'a' and kind ~= 's' then return false end`, `if true then return false end`}}},
	{name: "a claim asked again has another run id", plan: "lost reply", caught: unstarted, edits: []edit{
		{senderGo, `		b.answers, b.err = s.once(b)`, "\t\tfor i := range b.claims {\n\t\t\tif try > 0 && !b.claims[i].Pending {\n\t\t\t\tb.claims[i].Run += \"x\"\n\t\t\t}\n\t\t}\n\t\tb.answers, b.err = s.once(b)"}}},
	{name: "a question answered no is final at once", plan: "slow copies", caught: unstarted, edits: []edit{
		{senderGo, `if !asking || time.Since(b.copied) > 2*skew || !unsure(b) {`, `if !b.copied.IsZero() {`}}},
	{name: "the tick itself is asked for again and again, however late", plan: "outage", caught: tooLate, edits: []edit{
		{senderGo, `asking := time.Since(b.asked) > skew`, `asking := false`},
		{senderGo, `time.Since(b.copied) > 2*skew`, `b.copied.IsZero()`}}},
}

// What lets one run only hold a job.
var leases = []mutant{
	{name: "a lease has no local deadline", plan: "cut off", caught: "TOLD", edits: []edit{
		{"locking/keeper.go", "if left := time.Until(l.deadline) - asleep; left > 0 {", "if left := time.Until(l.deadline) - asleep + time.Hour; left > 0 {"},
		{"locking/keeper.go", "l.timer.Reset(k.leftLocked(l))", "l.timer.Reset(time.Hour)"}}},
	{name: "a look after a suspension leaves the deadline's timer", test: "./locking TestKeeperCountsASuspension", edits: []edit{
		{"locking/keeper.go", "if asleep >= sleepNoise {", "if asleep < 0 {"}}},
	{name: "a deadline's timer that is early is not set again", test: "./locking TestKeeperTimerByNoisyClocks", edits: []edit{
		{"locking/keeper.go", "l.timer.Reset(k.leftLocked(l))", "_ = k.leftLocked(l)"}}},
	{name: "the token of a fixed lease that is extended is forgotten", test: "./locking/redislock TestStateOutlivesAnExtendedLease", edits: []edit{
		{"locking/redislock/renew.go", "now.Add(-ttl)", "now.Add(-ttl / 2)"}}},
	{name: "a lost state hides its line from who releases", test: "./locking/redislock TestLineOutlivesItsState", edits: []edit{
		{"locking/redislock/release.lua", "has_line(last[2], last[3], now)", "has_line(last[2], true, now)"}}},
	{name: "a lost state hides its line from who passes by", test: "./locking/redislock TestLineOutlivesItsState", edits: []edit{
		{"locking/redislock/acquire.lua", "has_line(last[4], last[1], now)", "has_line(last[4], true, now)"}}},
	{name: "who waits for a foreign lock leaves a state for ever", test: "./locking/redislock TestForeignKey", edits: []edit{
		{"locking/redislock/line.lua", "if redis.call('PTTL', state) < patience then", "if false then"}}},
	{name: "a renewal under way hides a suspension", test: "./locking TestKeeperCountsASuspensionAmidACall", edits: []edit{
		{"locking/renew.go", "if p.timeout > lookEvery {", "if p.timeout < 0 {"}}},
	{name: "a function runs under another context than its lease's", plan: "cut off", caught: "TOLD", edits: []edit{
		{tryGo, `ctx := lease.Context()`, `ctx := r.ctx`}}},
	{name: "a renewal that is not answered counts as one", plan: "cut off", caught: "TOLD", edits: []edit{
		{renewGo, "case answers[i] == Renewed && k.leftLocked(l) > 0:", "case answers[i] != Gone && k.leftLocked(l) > 0:"}}},
	{name: "the deadline counts from the answer to the claim", plan: "old grant", caught: "TOLD", edits: []edit{
		{runnerGo, `Asked: g.asked, Slept: g.slept,`, `Asked: time.Now(), Slept: g.slept,`}}},
	{name: "the deadline counts from the last request", plan: "old grant", caught: "TOLD", edits: []edit{
		{verdictGo, `	return b.asked`, `	return b.sent`}}},
	{name: "a pending run's lease counts from the batch that hears of it", test: "./scheduler TestSinceTellsOfAnEarlierGrant", edits: []edit{
		{verdictGo, `if left := b.sent.Add(a.Left - c.TTL); left.Before(b.asked) {`, `if left := b.sent.Add(a.Left - c.TTL); left.IsZero() {`}}},
	{name: "a renewal's deadline counts from the answer", plan: "old renewal", caught: "TOLD", edits: []edit{
		{renewGo, `k.extendLocked(l, sent, slept)`, `k.extendLocked(l, now, slept)`}}},
	{name: "a function is called though its lease is over", plan: "late answer", caught: unstarted, edits: []edit{
		{runnerGo, `if back || !lease.Valid() {`, `if back {`}}},
	{name: "a lease is renewed when it is over", plan: "healthy", caught: verify.KindUntrue, edits: []edit{
		{"locking/keeper.go", `l.due = asked.Add(ttl / 3)`, `l.due = asked.Add(ttl)`}}},
	{name: "a lease is given up before the settle is answered", plan: "slow settle", caught: reaped, edits: []edit{
		{endGo, `	r.settle(l.g, report)`, "\tl.lease.Close()\n\tr.settle(l.g, report)"}}},
	{name: "a reap asks for no lapsed lease", plan: "cut off", caught: "TOLD", edits: []edit{
		{reapLua, ` or tonumber(r.until_) >= ms then`, ` then`},
		{"scheduler/ledger/look.go", `upTo(now-1, at.lapsed)`, `upTo(now+60_000, at.lapsed)`}}},
	{name: "a reap asks for no steady clock", plan: "step forward", caught: "TOLD", edits: []edit{
		{"scheduler/ripe.go", ` && seen >= l.TTL {`, ` && seen >= 0 {`}}},
	{name: "on a Cluster one master is watched", test: "./scheduler/ledger TestMastersOfACluster", edits: []edit{
		{"scheduler/ledger/masters.go", `	case !l.Clustered():`, `	case l.Clustered():`}}},
	{name: "a master of a Cluster that is away is taken for another one", test: "./scheduler/ledger TestMastersOfACluster", edits: []edit{
		{"scheduler/ledger/masters.go", `cmp.Or(at(was, p), Nobody), false`, `cmp.Or(Nobody, at(was, p)), false`}}},
	{name: "a master of a Cluster that has not said who it is may be any", test: "./scheduler/ledger TestMastersOfACluster", edits: []edit{
		{"scheduler/ledger/masters.go", `cmp.Or(at(was, p), Nobody), false`, `cmp.Or(at(was, p), ""), false`}}},
	{name: "on a Cluster any master grants", test: "./scheduler/ledger TestMastersOfACluster", edits: []edit{
		{"scheduler/ledger/claim.go", `by.ID, by.Name, keep, keepFor, at(l.known, p))`, `by.ID, by.Name, keep, keepFor, "")`}}},
	{name: "on a Cluster leases are reaped at any master", test: "./scheduler/ledger TestMastersOfACluster", edits: []edit{
		{"scheduler/ledger/lease.go", `keep, keepFor, at(l.byMaster(server), p)}`, `keep, keepFor, ""}`}}},
	{name: "a master of a Cluster that hangs hides the others", test: "./scheduler/ledger TestMasterThatHangs", edits: []edit{
		{"scheduler/ledger/masters.go", `	cluster, yes := l.client.(*redis.ClusterClient)
	if !yes {`, `	cluster, yes := l.client.(*redis.ClusterClient)
	if yes {`}}},
	{name: "a master of a Cluster that is away holds all up", test: "./scheduler TestMasterThatIsAwayHoldsNobodyUp", edits: []edit{
		{"scheduler/assert.go", `(missing || astray) && !l.Clustered()`, `missing || astray`}}},
	{name: "redislock gives back a lock whoever holds it", test: "./locking/redislock TestConformanceEmbedded", edits: []edit{
		{"locking/redislock/release.lua", `if holder_of(value) == owner then`, `if holder_of(value) then`}}},
	{name: "a run that is handed back keeps its id", test: "./scheduler/ledger TestAuditOfTrueBooks", edits: []edit{
		{"scheduler/ledger/settle.go", `return uuid.NewSHA1(uuid.NameSpaceOID, []byte(run)).String()`, "_ = uuid.NewSHA1\n\treturn run"}}},
	{name: "a run that is here already is begun again", plan: "by hand", caught: verify.KindBlind, edits: []edit{
		{verdictGo, `if c.Pending && !e.news(c.Run, a.Token) {`, `if false {`},
		{runnerGo, `if _, here := r.live.LoadOrStore(id, l); here {`, `if _, here := r.live.LoadOrStore(id, l); here && id == "" {`}}},
	{name: "a draining node starts what it is granted", plan: "drain", caught: drained, edits: []edit{
		{"scheduler/node.go", `g.back != "" || n.draining.Load()`, `g.back != ""`}}},
}

// What makes tokens grow.
var tokens = []mutant{
	{name: "a token is a mere counter", test: "./locking/redislock TestTokensSurvive", edits: []edit{
		{tokenLua, `token = math.max(t + 1, now)`, `token = t + 1`},
		{tokenLua, `token = math.max(t + 1000000, now + guard)`, `token = t + 1`}}},
	{name: "a token jumps ahead of the last one, not of the clock", test: "./locking/redislock TestTokensSurvive", edits: []edit{
		{tokenLua, `token = math.max(t + 1000000, now + guard)`, `token = math.max(t, now) + guard`}}},
	{name: "a token does not jump on another server", plan: "set back, emptied", caught: refused, edits: []edit{
		{tokenLua, `token = math.max(t + 1000000, now + guard)`, `token = math.max(t + 1, now)`}}},
}

// What clocks may do, and may not.
var clocks = []mutant{
	{name: "no clock is compared", plan: "stale claim", caught: unstarted, edits: []edit{
		{preludeLua, `return math.abs(ms - tonumber(now)) > tonumber(skew)`, `return false`}}},
	{name: "a tick is granted before it is due, and no clock is compared", plan: "random", caught: verify.KindEarly, edits: []edit{
		{claimLua, `if at > ms then`, `if false then`},
		{preludeLua, `return math.abs(ms - tonumber(now)) > tonumber(skew)`, `return false`}}},
	{name: "a clock is steady also when nobody looks at it", test: "./scheduler TestClockIsSteadyOnlyWhereItWasSeen", edits: []edit{
		{clockGo, `if received.Sub(c.latest) > unseen {`, `if received.Sub(c.latest) > 9*time.Hour {`}}},
	{name: "a step that is not believed leaves the clock steady", test: "./scheduler TestClockIsNotSteadyThroughARefusedStep", edits: []edit{
		{clockGo, `c.steady = received // it did step, believed or not`, `// it did step, believed or not`}}},
	{name: "the wall clock decides when ticks fire", plan: "wrong walls", caught: verify.KindLost, edits: []edit{
		{clockGo, `return c.best.at(time.Now()).UTC()`, `return c.wall().UTC()`},
		{clockGo, `return c.best.at(time.Now()).Add(-c.best.half).UTC()`, `return c.wall().UTC()`}}},
	{name: "a step of Redis' clock is not followed", plan: "step back", caught: verify.KindLost, edits: []edit{
		{clockGo, "\tgot.Step = step\n", "\tif step.Abs() < c.maxStep {\n\t\treturn got\n\t}\n\tgot.Step = step\n"}}},
	{name: "any step of Redis' clock is believed", plan: "step away", caught: ahead, edits: []edit{
		{clockGo, `if step.Abs() > c.maxStep && !c.nearer(s) {`, `if step.Abs() > 99*c.maxStep && !c.nearer(s) {`}}},
	{name: "@every counts from the start of the process", plan: "healthy", caught: verify.KindPhantom, edits: []edit{
		{"jobs/every.go", `tick := (floorDiv(floorMilli(after), s.every) + 1) * s.every`, "if born == 0 {\n\t\tborn = floorMilli(time.Now())\n\t}\n\ttick := (floorDiv(floorMilli(after)-born, s.every)+1)*s.every + born"},
		{"jobs/every.go", `func (s *Schedule) nextEvery(`, "var born int64\n\nfunc (s *Schedule) nextEvery("}}},
}

// What accounts for every tick, and every run, once.
var ends = []mutant{
	{name: "missed ticks are not recorded", plan: "outage", caught: verify.KindLost, edits: []edit{
		{claimLua, `  for _, p in ipairs(list) do`, `  for _, p in ipairs({}) do`}}},
	{name: "the newest tick runs and the missed ones are not counted", plan: "outage", caught: verify.KindBooks, edits: []edit{
		{planGo, `Last: last, Count: n, Next: next}`, `Last: last, Count: 1, Next: next}`}}},
	{name: "the next tick is counted from now", caught: verify.KindLost, edits: []edit{
		{planGo, `tick: at, next: p.after(at), trigger`, `tick: at, next: p.after(max(at, now)), trigger`}}},
	{name: "a report of a run that was reaped frees the job", plan: "cut off", caught: "TOLD", edits: []edit{
		{settleLua, `  if was == outcome then return 'settled' end`, "  local raced = entry_of(redis.call('HGET', KEYS[1], names[i]))\n  raced.open = ''\n  redis.call('HSET', KEYS[1], names[i], entry_text(raced))\n  if was == outcome then return 'settled' end"}}},
	{name: "a report of a run that was reaped overwrites the outcome", plan: "cut off", caught: verify.KindOverlap, edits: []edit{
		{settleLua, `redis.call('LSET', KEYS[FIRST + i], at, head .. '|' .. outcome .. ' ' .. ended .. '|' .. err)`, `redis.call('LSET', KEYS[FIRST + i], at, (string.gsub(head, '|' .. was .. '|', '|' .. outcome .. '|')) .. '||' .. err)`}}},
	{name: "a report is not repeated", plan: "slow settle", caught: reaped, edits: []edit{
		{"scheduler/settler.go", `if try >= settleTries && !errors.Is(err, locking.ErrUnreachable)`, `if (try >= settleTries || errors.Is(err, locking.ErrUnreachable))`}}},
}

// What keeps a node at work.
var engines = []mutant{
	{name: "nobody takes the ticks of a dead node", plan: "dead owner", caught: failover, edits: []edit{
		{"scheduler/turn.go", `if late < n.cfg.Grace ||`, `if late >= 0 ||`}}},
	{name: "the sweep does not look at what is pending", plan: "late answer", caught: verify.KindBooks, edits: []edit{
		{"scheduler/consider.go", `e.pending = e.choose(f.Pending, now.UnixMilli())`, `e.pending = e.choose(f.Pending[:0], now.UnixMilli())`}}},
	{name: "a claim that is answered no keeps its slot", plan: "one slot", caught: verify.KindLost, edits: []edit{
		{verdictGo, "\te.slots.give()\n\tswitch", "\tswitch"}}},
	{name: "a claim that fails keeps its slot", plan: "refused", caught: verify.KindLost, edits: []edit{
		{verdictGo, "if b.err != nil {\n\t\t\te.slots.give()", "if b.err != nil {"}}},
	{name: "a node does not register again when Redis has lost everything", plan: "emptied", caught: verify.KindLost, edits: []edit{
		{"scheduler/registrar.go", `func (r *registrar) wiped() { signal(r.lost) }`, `func (r *registrar) wiped() {}`},
		{verdictGo, `e.expel(j, vanished)`, `e.again(j, j.cursor, time.Second)`}}},
	{name: "a handed-back run is asked for after those that wait for it", test: "./scheduler/schedtest TestRegressions", edits: []edit{
		{"scheduler/consider.go", `return cmp.Compare(e.turn(a), e.turn(b))`, `return cmp.Compare(e.turn(b), e.turn(a))`}}},
	{name: "the end of a run tells nobody that waited for it", test: "./scheduler TestFreedIsAskedForAtOnce", edits: []edit{
		{verdictGo, "waited := j.waited\n", "waited := j.waited && false\n"}}},
	{name: "overdue ticks are not looked at", plan: "dead owner", caught: failover, edits: []edit{
		{"scheduler/consider.go", `for _, l := range f.Late {`, `for _, l := range f.Late[:0] {`}}},
	{name: "a function that goes on is not told of the drain", plan: "long drain", caught: "HARNESS", edits: []edit{
		{runnerGo, `	r.cancel(ErrDraining)`, `	_ = ErrDraining`}}},
	{name: "a node that stops stays in the roster", plan: "healthy", caught: "LEFTOVER", edits: []edit{
		{"scheduler/node.go", "settling.Wait()\n\tn.leave(ctx)", "settling.Wait()"}}},
	{name: "a node that has stopped claiming for a wrong clock never goes on", plan: "step away", caught: stood, edits: []edit{
		{clockGo, `c.latest, c.stopped = received, nil`, `c.latest = received`}}},
	{name: "late ticks are missed however little they are late", caught: verify.KindUntrue, edits: []edit{
		{planGo, `catchUpBound.Milliseconds()`, `0*catchUpBound.Milliseconds()`}}},
	{name: "the agenda gives the last job first", caught: verify.KindLate, edits: []edit{
		{"scheduler/heap.go", `return j.at < other.at`, `return j.at > other.at`}}},
	{name: "few slots are taken for all partitions at once", test: "./scheduler TestFewSlotsAreTakenInBatches", edits: []edit{
		{"scheduler/heap.go", `case j.part != other.part:`, `case false:`}}},
	{name: "an orphan that somebody holds again stays put off", test: "./scheduler TestOrphansAreHeldAgain", edits: []edit{
		{"scheduler/relay.go", `	s.adopted(ctx, crowd)
`, ``}}},
	{name: "want of room is not said", test: "./scheduler TestNoRoomIsSaid", edits: []edit{
		{"scheduler/verdict.go", `	e.sayNoRoom(j, holder)
`, ``}}},
	{name: "every run is recorded as succeeded", test: "./scheduler TestTimeoutPanicAndErrorAreRecorded", edits: []edit{
		{endGo, `	case err == nil:`, `	case err == nil || err != cause:`}}},
	{name: "nothing is reaped", plan: "dead worker", caught: verify.KindBooks, edits: []edit{
		{"scheduler/ripe.go", ` && seen >= l.TTL {`, ` && seen < 0 {`}}},
}

// What keeps old and new definitions apart.
var definitions = []mutant{
	{name: "a build that is gone decides", test: "./scheduler TestNewestOfTheLivingDecides", edits: []edit{
		{"scheduler/generations_crowd.go", ` && c.built[n.ID] >= revision`, ``}}},
	{name: "a full partition keeps a generation from being kept in others", test: "./scheduler TestNinthGenerationWhereThereIsRoom", edits: []edit{
		{"scheduler/generations_beside.go", `full, list = err, slices`, `return err
			full, list = err, slices`}}},
	{name: "a follower that is on standby only is waited for", test: "./scheduler TestPromoteWithoutAFollower", edits: []edit{
		{"scheduler/generations_crowd.go", "\t\tcase c.standby[n.ID]:\n", "\t\tcase false:\n"},
		{"scheduler/relay.go", ` || !w.since.IsZero() && time.Since(w.since) >= unheldAfter`, ``}}},
	{name: "a unique key outlives its job", test: "./scheduler/ledger TestRemoveForgetsUniqueKeys", edits: []edit{
		{"scheduler/ledger/scripts/remove.lua", `    redis.call('ZREM', KEYS[13], p.request)`, ``}}},
	{name: "a job that once followed cannot be set back", test: "./scheduler/ledger TestRewindOfAJobThatFollowed", edits: []edit{
		{"scheduler/ledger/scripts/rewind.lua", `base = base or string.match(`, `base = base and string.match(`}}},
	{name: "a tick that was handed back runs however late", test: "./scheduler/ledger TestHandedBackTooLate", edits: []edit{
		{"scheduler/ledger/scripts/claim.lua", `if (after or back) and drop`, `if after and drop`}}},
	{name: "an older revision replaces the newer one", plan: "one is newer", caught: flapping, edits: []edit{
		{"scheduler/register.go", `return !r.held(ctx, j.Name, stored.Digest)`, `return true`}}},
	{name: "a superseded node never asks again", plan: "newer one dies", caught: verify.KindLost, edits: []edit{
		{"scheduler/registrar.go", `if !r.freed() {`, `if true {`},
		{"scheduler/generations.go", `now.Add(rosterTTL - lookEvery/2)`, `now.Add(time.Hour)`},
		{"scheduler/generations.go", `now.Add(standbyTTL)`, `now.Add(time.Hour)`}}},
	{name: "a definition is replaced and its old ticks are not recorded", plan: "all are newer", caught: verify.KindLost, edits: []edit{
		{"scheduler/register.go", `def.Until, def.Count = millis(until), int64(count)`, `def.Until, def.Count = millis(until), int64(count)*0`}}},
	{name: "a node does not name the tick that comes next", test: "./scheduler TestWishNamesTheUpcomingTick", edits: []edit{
		{"scheduler/register.go", `def.Upcoming = millis(w.old.Next(now))`, `def.Upcoming = 0`}}},
	{name: "a definition passes over a tick that has come due", test: "./scheduler/ledger TestDefine", edits: []edit{
		{defineLua, ` or (upcoming ~= '' and tonumber(upcoming) <= ms)`, ``}}},
	{name: "a replaced definition leaves no row", plan: "all are newer", caught: verify.KindBooks, edits: []edit{
		{defineLua, `append(KEYS[6 + i],`, `string.len(KEYS[6 + i],`}}},
	{name: "a definition is replaced wherever its cursor stands", plan: "slow define", caught: verify.KindContradiction, edits: []edit{
		{defineLua, `(e.cursor ~= stood or (upcoming`, `((upcoming`}}},
}

// What only helps: where the system says that something is a hint, or a second guard stands behind the first.
var hints = []mutant{
	{name: "every node goes first for every job", harmless: "the cursor decides, the assignment only hints", edits: []edit{
		{"scheduler/owners.go", `if first == self {`, `if first >= 0 {`}}},
	{name: "nobody goes first for any job", plan: "calm", caught: slow, edits: []edit{
		{"scheduler/owners.go", `if first == self {`, `if first < 0 {`}}},
	{name: "nobody waits for their turn", harmless: "the cursor decides who of many is granted", edits: []edit{
		{"scheduler/turn.go", `return late >= n.cfg.Grace+time.Duration(min(max(rank, 0), turnsMax))*turnEvery`, `return late >= n.cfg.Grace+0*time.Duration(min(max(rank, 0), turnsMax))*turnEvery`}}},
	{name: "a beat that fails is an outage", test: "./scheduler TestTurnsThroughFailingCalls", edits: []edit{
		{"scheduler/health.go", `h.blind = h.blind || role == roleSweep || role == roleClaim`, `h.blind = true`}}},
	{name: "turns pass while Redis is away", test: "./scheduler TestTurnsThroughFailingCalls", edits: []edit{
		{"scheduler/health.go", `h.blind, h.sighted = false, time.Now()`, `h.blind = false`}}},
	{name: "turns pass while grants are held", test: "./scheduler TestTurnsAfterAFailover", edits: []edit{
		{"scheduler/failover.go", `f.n.health.asks()`, `_ = f.n.health.asks`}}},
	{name: "the end of a hold forgets an outage's", test: "./scheduler TestTurnsAfterAFailover", edits: []edit{
		{"scheduler/health.go", `now.After(h.sighted)`, `!now.IsZero()`}}},
	{name: "a claim that was too old to be sent waits a second more", test: "./scheduler TestEngineAsksAnew", edits: []edit{
		{"scheduler/verdict.go", `pause = 0 // it`, `pause = time.Second // it`}}},
	{name: "go-redis repeats every request once", harmless: "scripts may be repeated", edits: []edit{
		{"locking/redisconn/check.go", `if retries > 0 {`, `if retries > 99 {`},
		{"scheduler/schedtest/process.go", `o.PoolSize = 256`, `o.PoolSize, o.MaxRetries = 256, 1`}}},
	{name: "a restart of Redis does not begin the wait for a steady clock", harmless: "what held a lease was stopped by the outage, and P4 is not promised behind lost writes", edits: []edit{
		{clockGo, `c.runID, c.steady = runID, received`, `c.runID = runID`}}},
	{name: "the wiped roster is not told to the registrar", harmless: "a claim is answered unknown, and that registers its job", edits: []edit{
		{"scheduler/registrar.go", `func (r *registrar) wiped() { signal(r.lost) }`, `func (r *registrar) wiped() {}`}}},
	{name: "a reap ignores the beat", harmless: "a renewed lease has not lapsed, and an unsteady clock is waited out", edits: []edit{
		{reapLua, `r.beat ~= beat or `, ``}, {"scheduler/ripe.go", `known && before.beat == l.Beat`, `known && before.beat >= 0`}}},
	{name: "a reap ignores the end of the lease", harmless: "only lapsed leases are looked at, and a renewal moves the beat", edits: []edit{
		{reapLua, ` or tonumber(r.until_) >= ms then`, ` then`}}},
	{name: "a lapsed lease is reaped at first sight", harmless: "its holder has stopped a margin before", edits: []edit{
		{"scheduler/ripe.go", `known && before.beat == l.Beat`, `(before.beat == l.Beat || !known)`}}},
	{name: "a reap does not ask which server it speaks to", harmless: "P4 is not promised behind lost writes", edits: []edit{
		{reapLua, ` or elsewhere(ARGV[5], server_run_id()) then`, ` then`}}},
	{name: "a run ends with its lease, not a margin before", test: "./scheduler TestLeaseLostIsToldBeforeItIsTaken", edits: []edit{
		{"scheduler/node.go", `Margin: n.cfg.MaxSkew,`, `Margin: 1,`}}},
	{name: "ticks fire by the middle of the clock's error", harmless: "what comes early is answered early and asked again", edits: []edit{
		{clockGo, `.Add(-c.best.half).UTC()`, `.UTC()`}}},
}
