//go:build mutants

package schedtest_test

// What tools read, and what they say.
var tools = []mutant{
	{name: "a run in flight is looked for in all histories", test: "./scheduler TestRunIsFoundWithFewReads", edits: []edit{
		{"scheduler/inspectrun.go", `if v, err = inFlight(ctx, l, names, id); err != nil || v.Run != "" {`, `if v, err = inFlight(ctx, l, names, id); err != nil {`}}},
	{name: "a look for a run does not stop where it is", test: "./scheduler TestRunIsFoundWithFewReads", edits: []edit{
		{"scheduler/inspectrun.go", `return v.Run == "" && job == ""`, `return true`}}},
	{name: "one round trip reads all histories", test: "./scheduler TestRunIsFoundWithFewReads", edits: []edit{
		{"scheduler/ledger/history.go", `historyJobs = 128`, `historyJobs = 1 << 20`}}},
	{name: "a long history leads to no shorter page", test: "./scheduler/ledger TestEachHistoryReadsPages", edits: []edit{
		{"scheduler/ledger/history.go", `max(1, historyRows/most)`, `max(1, historyRows)`}}},
	{name: "a limit drops newer runs than it keeps", test: "./scheduler TestListKeepsTheNewest", edits: []edit{
		{"scheduler/inspectruns.go", `p.floor = placeOf(p.views[p.Limit-1])`, `p.floor = placeOf(p.views[0])`}}},
	{name: "a limit shortens what is counted", test: "./scheduler TestListKeepsTheNewest", edits: []edit{
		{"scheduler/inspectruns.go", "	p.matched++\n	if p.full && place <= p.floor {\n		return\n	}\n", "	if p.full && place <= p.floor {\n		return\n	}\n	p.matched++\n"}}},
	{name: "the end of a caller's patience is an outage", test: "./scheduler TestLookEndsWithItsContext", edits: []edit{
		{"scheduler/inspectwait.go", `err != nil && over != nil && !errors.As`, `err != nil && over != nil && false && !errors.As`}}},
	{name: "whoever waits looks at everything", test: "./scheduler TestWaitReadsLittle", edits: []edit{
		{"scheduler/inspectwait.go", "	if err != nil || next.Run != \"\" {\n		return next, id, err\n	}\n", "	_, _ = next, err\n"}}},
	{name: "whoever waits for long looks as often", test: "./scheduler TestWaitReadsLittle", edits: []edit{
		{"scheduler/inspectwait.go", `		waited += d`, `		waited += d - d`}}},
	{name: "only one hand-back between two looks is followed", test: "./scheduler TestWaitFollowsQuickHandBacks", edits: []edit{
		{"scheduler/inspectwait.go", `ids := chainOf(v.Run)`, `ids := chainOf(v.Run)[:1]`}}},
	{name: "a short history keeps what is too old", test: "./scheduler/ledger TestShortHistoryIsTrimmedByAge", edits: []edit{
		{preludeLua, `    if n > 32 then return true end`, `    if true then return true end`}}},
	{name: "a node hears of bad settings only when it runs", test: "./scheduler TestNewRefuses", edits: []edit{
		{"scheduler/config.go", `c.ledger().Validate(), reg.Check()`, `reg.Check()`}}},
	{name: "rows may leave before nodes forget what ended", test: "./scheduler TestNewRefuses", edits: []edit{
		{"scheduler/ledger/ledger.go", `if c.KeepFor < keepForLeast {`, `if c.KeepFor <= 0 {`}}},
	{name: "delayed runs keep large payloads out", test: "./scheduler/ledger TestTriggerLargePayload", edits: []edit{
		{"scheduler/ledger/scripts/trigger.lua", `redis.call('ZCOUNT', KEYS[3], '-inf', int(ms))`, `redis.call('ZCARD', KEYS[3])`}}},
	{name: "large payloads are taken whatever waits", test: "./scheduler/ledger TestTriggerLargePayload", edits: []edit{
		{"scheduler/ledger/scripts/trigger.lua", `if #payload > 1024 and`, `if false and`}}},
	{name: "any word is an outcome", test: "./scheduler TestListRefusesOtherWords", edits: []edit{
		{"scheduler/inspectruns.go", `if f.Outcome == "" || f.Outcome == OutcomePending {`, `if true {`}}},
}
