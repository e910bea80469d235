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
		{failoverGo, `known = f.assert(ctx, server, may)`, "f.mu.Lock()\n\t\tf.known, f.told, known = server, server, true\n\t\tf.mu.Unlock()"}}},
	{name: "a new server is not told what has ended", test: failovers, edits: []edit{
		{assertGo, `for i := range f.ended {`, `for i := range f.ended[:0] {`}}},
	{name: "ends that were lost are not recorded again", test: "./scheduler TestFailoverTellsEndsAgain", edits: []edit{
		{assertGo, `	if len(ends) == 0 {`, `	if true {`}}},
	{name: "nobody waits for what others have to tell", test: failovers, edits: []edit{
		{failoverGo, `may := f.all == server || `, `may := true || `}}},
	{name: "a node that hangs keeps the others waiting", test: "./scheduler TestFailoverHoldIsBounded", edits: []edit{
		{failoverGo, ` || time.Since(f.since) >= f.n.cfg.FailoverHold`, ``}}},
	{name: "a node that starts waits for nobody", test: "./scheduler TestFailoverStartingNodeWaits", edits: []edit{
		{failoverGo, `f.told, f.known = server, time.Now(), server, server`, `f.told, f.known, f.open = server, time.Now(), server, server, server`}}},
	{name: "a claim is granted by a server that was not told", test: failovers, edits: []edit{
		{claimLua, `if elsewhere(ARGV[7], here) then`, `if false then`}}},
	{name: "a run is recorded as unknown by a server that was not told of it", test: failovers, edits: []edit{
		{settleLua, `if elsewhere(ARGV[3], here) then`, `if false then`}}},
	{name: "a lease is lost at a server that was not told of it", test: "./scheduler TestFailoverLeaseWaitsForTheAssertion", edits: []edit{
		{"scheduler/ledger/scripts/renew.lua", `if elsewhere(ARGV[1], here) then`, `if false then`}}},
	{name: "a grant of the server before is begun", test: "./scheduler TestFailoverOldGrantIsHandedBack", edits: []edit{
		{runnerGo, `back = back || !r.n.failover.noticed(g.server)`, `_ = g.server`}}},
	{name: "gaps are recorded before others could fill them", test: failovers, edits: []edit{
		{failoverGo, `known = f.assert(ctx, server, may)`, `known = f.assert(ctx, server, true)`}}},
	{name: "jobs are not registered again", harmless: "the claim of a job that Redis has lost registers it; its tick is lost if it was due", edits: []edit{
		{failoverGo, `		f.n.registrar.wiped()`, ``}}},
}
