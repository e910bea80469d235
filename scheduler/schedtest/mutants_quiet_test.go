//go:build mutants

package schedtest_test

// What keeps a master of a Cluster that is away from keeping others waiting.
var quiets = []mutant{
	{name: "claims at a slow or silent master keep the senders", test: "./scheduler TestSlowMaster", edits: []edit{
		{"scheduler/sender.go", "\t\tif s.n.quiet.apart {", "\t\tif false {"}}},
	{name: "ends of runs at a slow or silent master keep the carriers", test: "./scheduler TestSlowMaster", edits: []edit{
		{"scheduler/settler.go", "\t\tif s.quiet.apart {", "\t\tif false {"}}},
	{name: "jobs of a quiet partition take slots", test: "./scheduler TestShutPartition", edits: []edit{
		{"scheduler/engine.go", `if due && e.shut(j.part) {`, `if due && e.shut(-1) {`}}},
	{name: "claims that are not answered keep their slots", test: "./scheduler TestSilentMasterTakesNoSlots", edits: []edit{
		{"scheduler/sender.go", "\t\tb.lent = true\n\t\ts.n.engine.lend(len(b.claims))\n", ""}}},
	{name: "ends of runs that are not taken keep their slots", test: "./scheduler TestSilentMasterTakesNoSlots", edits: []edit{
		{"scheduler/settler.go", "\t\ts.lend(len(batch))\n", ""},
		{"scheduler/settler.go", "s.ended(reports, aside)", "s.ended(reports, false)"}}},
	{name: "the slots of ended runs are given twice", test: "./scheduler TestSilentMasterTakesNoSlots", edits: []edit{
		{"scheduler/settler.go", "s.ended(reports, aside)", "s.ended(reports, false)"}}},
	{name: "a run whose slot was lent begins without one", test: "./scheduler TestLentSlots", edits: []edit{
		{"scheduler/verdict.go", "b.crowded = b.lent && !e.slots.reclaim()", "b.crowded = b.lent && !e.slots.reclaim() && false"}}},
	{name: "only the first claim of a batch asks for its slot back", test: "./scheduler TestLentSlots", edits: []edit{
		{"scheduler/verdict.go", "b.crowded = b.lent && !e.slots.reclaim()", "b.crowded = b.lent && !e.slots.reclaim() && i == 0"}}},
	{name: "a run is handed back a few times only", test: "./scheduler TestHandBackWaits", edits: []edit{
		{"scheduler/runner.go", "if try >= handBacks && !(", "if try >= handBacks || false && ("}}},
	{name: "a run that cannot be handed back keeps its slot", test: "./scheduler TestHandBackWaits", edits: []edit{
		{"scheduler/runner.go", "if !lent && r.n.quiet.of(g.job.part) {", "if false {"}}},
	{name: "pending runs of a quiet partition are claimed", test: "./scheduler TestShutPartition", edits: []edit{
		{"scheduler/consider.go", "j.outside || e.shut(j.part)", "j.outside || e.shut(-1)"}}},
	{name: "shards of a quiet partition are claimed", test: "./scheduler TestShutPartition", edits: []edit{
		{"scheduler/shards.go", "j.outside || e.shut(j.part)", "j.outside || e.shut(-1)"}}},
	{name: "a look at all masters fails with one", test: "./scheduler TestJobsOfOtherMastersGoOn", edits: []edit{
		{"scheduler/ledger/errors.go", `left, silent = append(left, parts...), cmp.Or(silent, err)`, `left, silent = l.every(), cmp.Or(silent, err)`},
		{"scheduler/sweep.go", `heard, silent, unconfirmed := s.n.quiet.split()`, "silent, heard, unconfirmed := []int(nil), []int(nil), []int(nil)"}}},
	{name: "a partition that can be read is heard", test: "./scheduler TestQuietPartitions", edits: []edit{
		{"scheduler/quiet.go", `a.unheard || a.aside > 0)`, `a.unheard || a.aside > 99)`}}},
	{name: "what became late at a quiet partition is anybody's", test: "./scheduler TestQuietLate", edits: []edit{
		{"scheduler/quiet.go", `q.back[part] = time.Now()`, `q.back[part] = time.Time{}`}}},
	{name: "a node that starts without a master registers nothing", test: "./scheduler TestNodeStartsWithoutAMaster", edits: []edit{
		{"scheduler/register.go", `if err != nil && !errors.Is(err, errQuiet) {
				return facts, err
			}`, `if err != nil {
				return nil, err
			}`}}},
	{name: "what replicas have not confirmed is begun", test: "./scheduler TestConfirm", edits: []edit{
		{"scheduler/node.go", `g.back != "" || n.draining.Load()`, `n.draining.Load()`}}},
	{name: "what replicas have not confirmed is asked for again and again", test: "./scheduler TestConfirm", edits: []edit{
		{"scheduler/quiet.go", `q.at(p).unconfirmed = true`, `q.at(p).unconfirmed = false`}}},
	{name: "what one master refuses is forgotten when another answers", test: "./scheduler TestReadyWithoutAMaster", edits: []edit{
		{"scheduler/sweep.go", `s.failed, silent = err, nil`, `silent = nil`}}},
	{name: "a follower of a silent master keeps others outside", test: "./scheduler TestFollowerOfASilentMaster", edits: []edit{
		{"scheduler/register.go", "\t\t\terr = failed\n", "\t\t\treturn facts, again, failed\n"}}},
	{name: "with a generation a silent master stops all registration", test: "./scheduler TestFollowerOfASilentMaster", edits: []edit{
		{"scheduler/registrar.go", "\t*err = nil\n", ""}}},
	{name: "a master with another clock keeps the slots", test: "./scheduler TestMasterWithAnotherClock", edits: []edit{
		{"scheduler/sender.go", ` || s.n.quiet.apart && b.err != nil) {`, `) {`}}},
	{name: "a master without memory is no silent one", test: "./scheduler TestFullMaster", edits: []edit{
		{"scheduler/quiet.go", "if q.apart && redisconn.Full(err) {", "if redisconn.Full(err) && false {"}}},
	{name: "a question after an outage is held against the plan", test: "./scheduler TestReplanAfterAnOutage", edits: []edit{
		{"scheduler/verdict.go", "if !asked {", "if true {"}}},
	{name: "renewals of all masters are one request", test: "./locking/redislock TestSilentMaster", edits: []edit{
		{"locking/redislock/renew.go", "\t\tif yes {", "\t\tif yes && false {"}}},
	{name: "locks at a silent master keep the others from being given back", test: "./locking/redislock TestSilentMaster", edits: []edit{
		{"locking/release.go", "releasesAtOnce = 128", "releasesAtOnce = 16"}}},
	{name: "refused writes are no outage", test: "./locking/redisconn TestExplain", edits: []edit{
		{"locking/redisconn/explain.go", ` || strings.Contains(reply, ": "+p) {`, ` {`}}},
	{name: "a list shows nothing while a master is silent", test: "./scheduler TestToolsWithoutAMaster", edits: []edit{
		{"scheduler/ledger/read.go", "if err != nil && !errors.As(err, new(*UnheardError)) {", "if err != nil {"}}},
	{name: "a run that may be at a silent master is unknown", test: "./scheduler TestToolsWithoutAMaster", edits: []edit{
		{"scheduler/inspectrun.go", "if left != nil && errors.Is(err, ErrUnknownRun) {", "if left != nil && false {"}}},
}
