//go:build mutants

package schedtest_test

const (
	relayLua   = "scheduler/ledger/scripts/relay.lua"
	considerGo = "scheduler/consider.go"

	byPolicies = "./scheduler/schedtest TestPolicies"
)

// What a job's policies promise, and operators.
var policies = []mutant{
	{name: "reruns have no cap", test: byPolicies, edits: []edit{
		{preludeLua, `tonumber(r.attempt) < tonumber(r.most)`, `true`}}},
	{name: "a run that was cancelled is run again", test: byPolicies, edits: []edit{
		{preludeLua, ` and not wanted(k.cancels, id, r)`, ``},
		{"scheduler/end.go", `how == jobs.OutcomeCancelled && reason == ledger.ReasonDraining`, `how == jobs.OutcomeCancelled`}}},
	{name: "the id of the next attempt is any", test: byPolicies, edits: []edit{
		{"scheduler/ledger/settle.go", `func Successor(run string) string { return uuid.NewSHA1(uuid.NameSpaceOID, []byte(run)).String() }`, `func Successor(string) string { return uuid.NewString() }`}}},
	{name: "a node knows of no busy window", test: byPolicies, edits: []edit{
		{planGo, `if j.Overlap != jobs.OverlapQueue && j.Overlap != jobs.OverlapReplace {`, `if true {`}}},
	{name: "each busy tick runs", test: byPolicies, edits: []edit{
		{planGo, `if j.Overlap != jobs.OverlapQueue && j.Overlap != jobs.OverlapReplace {`, `if true {`},
		{claimLua, `if latest and (trigger`, `if false and (trigger`},
		{claimLua, `if bf and l >= bf and f < bt then return nil end`, ``}}},
	{name: "a late tick replaces the run", test: byPolicies, edits: []edit{
		{claimLua, ` and overlaps(e, at) then raise(`, ` then raise(`}}},
	{name: "a handed-back run starts during a pause", test: byPolicies, edits: []edit{
		{claimLua, `if p.holds ~= '' then return 'held', 'a pause' end`, ``}}},
	{name: "a paused job's ticks run", test: byPolicies, edits: []edit{
		{planGo, `case p.pause.Holds(at):`, `case p.pause.Holds(at) && false:`},
		{claimLua, ` or (pf and t >= pf and t < pt) then return nil end`, ` then return nil end`},
		{claimLua, `elseif pf and l >= pf and f < pt then return nil end`, `end`}}},
	{name: "word of a tick is taken up again and again", test: byPolicies, edits: []edit{
		{relayLua, `local before = redis.call('ZSCORE', KEYS[6], mark) and true or ran()`, `local before = false`}}},
	{name: "a failure leads to a run", test: byPolicies, edits: []edit{
		{relayLua, `local may_run = succeeded and follows`, `local may_run = follows`}}},
	{name: "runs by hand lead to runs of those that follow", test: byPolicies, edits: []edit{
		{preludeLua, `if r.request ~= '' or redis.call('HEXISTS', k.followers`, `if redis.call('HEXISTS', k.followers`}}},
	{name: "those that follow do not hear of ticks that did not run", test: byPolicies, edits: []edit{
		{claimLua, `if followed[i] then tell(`, `if false then tell(`}}},
	{name: "those that follow do not hear of crashes", test: byPolicies, edits: []edit{
		{preludeLua, `elseif r.shards == '1' then -- not`, `elseif outcome ~= 'abandoned' and r.shards == '1' then -- not`}}},
	{name: "a tick that is run again after a rewind is the first attempt", test: byPolicies, edits: []edit{
		{preludeLua, `return tick < bound and int(attempt) or '1'`, `return '1'`}}},
	{name: "nobody is told to end", test: byPolicies, edits: []edit{
		{sweepGo, `for _, c := range found.Cancels {`, `for _, c := range found.Cancels[:0] {`}}},
	{name: "wishes to end a run stay", test: byPolicies, edits: []edit{
		{preludeLua, "  redis.call('HDEL', k.cancels, id)\n  return true", "  return true"}}},
	{name: "catch_up_max does not count", test: "./scheduler TestPlan", edits: []edit{
		{planGo, `return p.newest(p.catchUpMax, at, bound), jobs.TriggerCatchUp`, `return at, jobs.TriggerCatchUp`}}},
	{name: "ticks are made up for with catch_up none", test: byPolicies, edits: []edit{
		{planGo, `return bound, jobs.TriggerSchedule`, `return at, jobs.TriggerSchedule`}}},
	{name: "start_within does not count", test: byPolicies, edits: []edit{
		{planGo, `case p.now-at > p.startWithin:`, `case false && p.now-at > p.startWithin:`}}},
	{name: "start_within does not count for those that follow", test: byPolicies, edits: []edit{
		{considerGo, `if after != 0 && now > after {`, `if after != 0 && now < 0 {`}}},
	{name: "a grant that is heard of twice is begun twice", test: "./scheduler/schedtest TestPendingRunIsBegunOnce", edits: []edit{
		{verdictGo, `if c.Pending && !e.news(c.Run, a.Token) {`, `if false {`}}},
	{name: "a pending run is asked for however late it has become", test: "./scheduler/schedtest TestFollowerIsNotAskedForTooLate", edits: []edit{
		{senderGo, `b.claims[i] = dropped(b.claims[i], b.jobs[i].dropAfter, now)`, `_ = now`}}},
	{name: "a function is tried again after its time is over", test: byPolicies, edits: []edit{
		{tryGo, `jobs.IsPermanent(l.err), l.ctx.Err() != nil:`, `jobs.IsPermanent(l.err):`},
		{tryGo, `if !pause(l.ctx, wait) || !l.lease.Valid() || l.ctx.Err() != nil {`, `if !pause(context.Background(), wait) {`}}},
	{name: "what is marked as permanent is tried again", test: byPolicies, edits: []edit{
		{tryGo, `l.tries > retry.Max, jobs.IsPermanent(l.err),`, `l.tries > retry.Max,`}}},
	{name: "one try too many", test: byPolicies, edits: []edit{
		{tryGo, `l.tries > retry.Max,`, `l.tries > retry.Max+1,`}}},
	{name: "a function has no time limit", test: byPolicies, edits: []edit{
		{tryGo, `if l.g.job.Timeout > 0 {`, `if l.g.job.Timeout > time.Hour {`}}},
	{name: "rows that are merged are not counted", test: byPolicies, edits: []edit{
		{preludeLua, "      count(e, outcome, n)\n      return true", "      return true"}}},
	{name: "who was told is told again in each sweep", test: "./scheduler TestFollowerThatIsGone", edits: []edit{
		{"scheduler/told.go", `return known && time.Since(at) < toldFor`, `return known && time.Since(at) < 0`}}},
	{name: "what another server was told counts", test: "./scheduler TestTold", edits: []edit{
		{"scheduler/told.go", `t.at == nil || t.server != server`, `t.at == nil`}}},
	{name: "who was told is remembered without bound", test: "./scheduler TestTold", edits: []edit{
		{"scheduler/told.go", `if len(t.at) < toldMax {`, `if true {`}}},
	{name: "a follower that nobody holds is told of at each event", test: "./scheduler TestFollowerThatIsGone", edits: []edit{
		{"scheduler/relay.go", `known && time.Since(said) < orphanLongest {`, `known && time.Since(said) < 0 {`}}},
	{name: "new events wait behind old ones", test: "./scheduler/ledger TestNewEventsDoNotWaitForOld", edits: []edit{
		{"scheduler/ledger/look.go", `if at.long {`, `if at.long && false {`}}},
	{name: "a lease that is lost after its function is told", test: "./scheduler TestHooksHearOfNoLeaseLostAfterTheFunction", edits: []edit{
		{tryGo, "\t\tcase <-ended: // the lease is kept until", "\t\tcase <-make(chan struct{}): // the lease is kept until"}}},
}
