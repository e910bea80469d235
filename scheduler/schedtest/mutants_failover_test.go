//go:build mutants

package schedtest_test

const (
	failoverGo = "scheduler/failover.go"
	assertGo   = "scheduler/assert.go"
	failovers  = "./scheduler/schedtest TestFailover"
)

// What a Redis that has lost writes is told.
var lostWrites = []mutant{
	{name: "a new server is not told what runs", test: failovers, edits: []edit{
		{failoverGo, `placed = f.assert(ctx, server, last)`, "f.mu.Lock()\n\t\t_ = last\n\t\tf.told, f.placed, placed = server, server, true\n\t\tf.mu.Unlock()"}}},
	{name: "a new server is not told what has ended", test: failovers, edits: []edit{
		{assertGo, `range f.memory.recent() {`, `range f.memory.recent()[:0] {`}}},
	{name: "ends that were lost are not recorded again", test: "./scheduler TestFailoverTellsEndsAgain", edits: []edit{
		{assertGo, `	if len(ends) == 0 {`, `	if true {`}}},
	{name: "nobody waits for what others have to tell", test: failovers, edits: []edit{
		{failoverGo, `last, may := f.allTold || over, f.allPlaced || over`, `last, may := true, true || over`}}},
	{name: "a node that hangs keeps the others waiting", test: "./scheduler TestFailoverHoldIsBounded", edits: []edit{
		{failoverGo, `over := time.Since(f.since) >= f.n.cfg.FailoverHold`, `over := false`}}},
	{name: "a node that starts waits for nobody", test: "./scheduler TestFailoverStartingNodeWaits", edits: []edit{
		{failoverGo, `f.told, f.placed = server, time.Now(), server, server`, `f.told, f.placed, f.open = server, time.Now(), server, server, server`}}},
	{name: "a claim is granted by a server that was not told", test: failovers, edits: []edit{
		{claimLua, `if elsewhere(ARGV[7], here) then`, `if false then`}}},
	{name: "a run is recorded as unknown by a server that was not told of it", test: failovers, edits: []edit{
		{settleLua, `if elsewhere(ARGV[3], here) then`, `if false then`}}},
	{name: "a lease is lost at a server that was not told of it", test: "./scheduler TestFailoverLeaseWaitsForTheAssertion", edits: []edit{
		{"scheduler/ledger/scripts/renew.lua", `if elsewhere(ARGV[1], here) then`, `if false then`}}},
	{name: "a grant of the server before is begun", test: "./scheduler TestFailoverOldGrantIsHandedBack", edits: []edit{
		{runnerGo, `back = back || !r.n.failover.noticed(g.server, g.job.part)`, `_ = g.server`}}},
	{name: "gaps are recorded before others could fill them", test: "./scheduler TestFailoverGapsAreFilled", edits: []edit{
		{failoverGo, `placed = f.assert(ctx, server, last)`, `_, placed = last, f.assert(ctx, server, true)`}}},
	{name: "nobody waits for gaps to be told", test: "./scheduler TestFailoverOthersWaitForGaps", edits: []edit{
		{failoverGo, `f.allTold || over, f.allPlaced || over`, `f.allTold || over, f.allTold || over`}}},
	{name: "an end is lost whose answer comes late", test: "./scheduler TestFailoverLateAnswerToAnEnd", edits: []edit{
		{failoverGo, `	if !f.same(f.server, server, part) {
		return false`, `	if false {
		return false`}}},
	{name: "a node leaves before it has told", test: "./scheduler TestFailoverLeavesWhenItHasTold", edits: []edit{
		{"scheduler/node.go", `	n.failover.part(alive)`, ``}}},
	{name: "a server that comes back is not told again", test: "./scheduler TestFailoverTellsAgainWhoComesBack", edits: []edit{
		{failoverGo, `if f.told == server {`, `if false {`}}},
	{name: "a run that waits to be restored is asked for", test: "./scheduler TestFailoverKeepsTheOthers", edits: []edit{
		{assertGo, `f.told, f.left, f.leftOf = server, left, server`, `f.left, f.leftOf = left, server
		if len(left) == 0 {
			f.told = server
		}`}}},
	{name: "a server is told nothing whose clock is not believed", test: "./scheduler TestFailoverToAWrongClock", edits: []edit{
		{assertGo, `f.n.clock.last()`, `f.n.clock.now()`}}},
	{name: "ends are recorded again that have left the history", test: "./scheduler TestFailoverTrimmedHistory", edits: []edit{
		{"scheduler/ledger/scripts/reassert.lua", ` or trimmed(KEYS[FIRST + i], ended) then`, ` then`}}},
	{name: "a node that has not seen all masters of a Cluster looks again as if it had", test: "./scheduler TestFailoverLooksAgainSoon", edits: []edit{
		{failoverGo, `	if f.partly.Load() {`, `	if false {`}}},
	{name: "what others say of the masters of a Cluster is not understood", test: "./scheduler TestRunIsToldToAnotherMaster", edits: []edit{
		{failoverGo, `server := ledger.Fingerprint(f.server)`, `server := f.server`}}},
	{name: "what others have told another server counts", test: failovers, edits: []edit{
		{"scheduler/ledger/masters.go", `		return server
	}
	sum`, `		return "x"
	}
	sum`}}},
	{name: "a tool goes on asking a master of a Cluster that is gone", test: "./scheduler TestInspectorFindsAnotherMaster", edits: []edit{
		{"scheduler/ledger/errors.go", `	redisconn.LookAgain(ctx, client, err)
`, ``}}},
	{name: "who asks for the drains alone goes on asking a master that is gone", test: "./scheduler TestInspectorFindsAnotherMaster", edits: []edit{
		{"scheduler/drain.go", `		redisconn.LookAgain(ctx, i.client, err)
`, ``}}},
	{name: "a new server counts before it can be told anything", test: "./scheduler TestFailoverToADeafServer", edits: []edit{
		{"scheduler/ledger/masters.go", `len(writable) == 0 {`, `len(writable) == 99 {`}}},
	{name: "a new master of a Cluster counts before it can be told anything", test: "./scheduler TestDeafMasterIsWaitedFor", edits: []edit{
		{"scheduler/ledger/masters.go", `deaf := slices.Contains(fresh, p) && !slices.Contains(writable, p)`, `deaf := slices.Contains(fresh, p) && !slices.Contains(writable, p) && false`}}},
	{name: "a Redis that can be read is taken for one that takes writes", test: "./scheduler TestDeafServerIsSaid", edits: []edit{
		{"scheduler/health.go", `h.deaf.err != nil && (role == roleBeat || role == "open") {`, `h.deaf.err != nil {`}}},
	{name: "what lapsed while nothing could be written is reaped at once", test: "./scheduler TestEndWhileNothingIsWritten", edits: []edit{
		{"scheduler/clock.go", `	if !c.written.IsZero() && now.Sub(c.written) > unseen {
		c.steady = now
	}
`, ``}}},
	{name: "ends that Redis has no memory for are given up", test: "./scheduler TestEndWhileNothingIsWritten", edits: []edit{
		{"scheduler/settler.go", ` && !redisconn.Full(err)`, ` && (redisconn.Full(err) || true)`}}},
	{name: "ends that are refused for a password are given up", test: "./scheduler TestEndWhileNothingIsWritten", edits: []edit{
		{"scheduler/settler.go", ` && !redisconn.Denied(err) {`, ` {`}}},
	{name: "what lapsed at a silent master is reaped at once", test: "./scheduler TestRipeAfterAnAbsence", edits: []edit{
		{"scheduler/ripe.go", `seen = min(seen, s.writtenFor(ctx, s.n.ledger.Partition(l.Job)).Milliseconds())`, `_ = s.writtenFor`}}},
	{name: "what lapsed is reaped as soon as its master can be read", test: "./scheduler TestRipeAfterAnAbsence", edits: []edit{
		{"scheduler/ripe.go", `s.n.ledger.Writable(ctx, []int{part}); err != nil {`, `s.n.ledger.Writable(ctx, []int{part}); err != nil && false {`}}},
	{name: "nothing is reaped while nodes cannot meet", test: "./scheduler TestDeadNodeIsReapedWithoutTheHomeMaster", edits: []edit{
		{"scheduler/members.go", `		if !m.n.quiet.apart {`, `		if true {`}}},
	{name: "an error's text is kept whole", test: "./scheduler TestErrorsThatPanic", edits: []edit{
		{tryGo, `	return errors.New(clip(err.Error(), errorRoom))
}`, `	return errors.New(err.Error())
}`}}},
	{name: "a run whose record is gone holds its job for ever", test: "./scheduler/ledger TestLostRecordFreesItsJob", edits: []edit{
		{claimLua, ` and e.open ~= '' and not dangling(e)`, ` and e.open ~= ''`}}},
	{name: "a run whose record is gone holds what is pending for ever", test: "./scheduler/ledger TestLostRecordFreesItsJob", edits: []edit{
		{claimLua, ` or e.open == id or dangling(e) then`, ` or e.open == id then`}}},
	{name: "all wait for a partition that has another master", test: "./scheduler TestReplacedMasterHoldsItsOwn", edits: []edit{
		{failoverGo, `s.parts[p] = before[p] != now[p]`, `s.parts[p] = before[p] != now[p] || true`}}},
	{name: "grants of masters that stay are handed back", test: "./scheduler TestReplacedMasterHoldsItsOwn", edits: []edit{
		{failoverGo, `return a == b || f.n.ledger.Master(a, part) == f.n.ledger.Master(b, part)`, `return a == b`}}},
	{name: "masters that stay are told of all runs", test: "./scheduler TestReplacedMasterIsToldAtOnce", edits: []edit{
		{assertGo, `return left && !is || kept != "" && kept == masters[c.g.job.part]`, `_ = kept == masters[c.g.job.part]; return left && !is`}}},
	{name: "a master that comes back beside another new one is not told again", test: "./scheduler TestFailoverForgetsWhatWasKept", edits: []edit{
		{failoverGo, `			f.kept[p] = ""`, `			_ = p`}}},
	{name: "a master that was not told of all is not told again", test: "./scheduler TestFailoverForgetsWhatWasKept", edits: []edit{
		{assertGo, `f.left = server, nil; sum.left == 0 {`, `f.left = server, nil; true {`}}},
	{name: "a node that notices no restart says nothing", test: "./scheduler TestUserWithoutInfo", edits: []edit{
		{"scheduler/node.go", "\tn.warnUnnamed(ctx)\n", ""}}},
	{name: "each Redis is said to hide who it is", test: "./scheduler TestUserWithoutInfo", edits: []edit{
		{"scheduler/trouble.go", `if n.clock.server() != "" {`, `if false {`}}},
	{name: "jobs are not registered again", harmless: "the claim of a job that Redis has lost registers it; its tick is lost if it was due", edits: []edit{
		{failoverGo, `	f.n.registrar.wiped()`, ``}}},
}
