//go:build mutants

package schedtest_test

// What locks for other purposes than runs promise besides.
var locks = []mutant{
	{name: "ReleaseAll takes its time for each lease", test: "./locking TestReleaseAllIsBounded", edits: []edit{
		{"locking/release.go", `errs[i] = leases[i].releaseClosed(ctx)`, `errs[i] = leases[i].Release(ctx)`}}},
	{name: "leases are valid while they are given back", test: "./locking TestReleaseAllIsBounded", edits: []edit{
		{"locking/release.go", "\t\tlease.Close()\n", "\t\t_ = lease\n"}}},
	{name: "a revoked lease is taken from whoever works on", test: "./locking TestRevokedLeaseIsLeftToItsHolder", edits: []edit{
		{"locking/renew.go", `k.end(l, lost, "the store says that it is gone")`, `k.end(l, lost, "the store says that it is gone")
		l.locker.releaseLater(leftover{Request: Request{Name: l.grant.Name, Owner: l.grant.Owner}})`}}},
	{name: "negative times of a Config are taken for none", test: "./locking TestRefusedConfig", edits: []edit{
		{"locking/locker.go", `, refused: cfg.check()}`, `}`}}},
	{name: "a hold that was entered again ends a moment later", test: "./locking TestContextsEndBeforeTheRelease", edits: []edit{
		{"locking/keeper.go", "\tfor _, in := range inner {\n\t\tin.cancel(l.cause)\n", "\tfor range inner {\n"}}},
	{name: "ReleaseAll waits for holders that release", test: "./locking TestReleaseAllIsBounded", edits: []edit{
		{"locking/lease.go", "\t\tcase <-ctx.Done():\n\t\t\treturn fmt.Errorf(\"release lock", "\t\tcase <-l.ctx.Done():\n\t\t\tl.releasing <- struct{}{}\n\t\t\t<-l.releasing\n\t\t\treturn fmt.Errorf(\"release lock"}}},
	{name: "a list makes up what it has not read", test: "./locking/redislock TestListIsInterrupted", edits: []edit{
		{"locking/redislock/list.go", "\t\tif ctx.Err() != nil {", "\t\tif false {"}}},
	{name: "a grant revoked before it was told ends the wait", test: "./locking/redislock TestRevokedBeforeTold", edits: []edit{
		{"locking/locker.go", `if !errors.Is(err, ErrLost) || `, `if true || `}}},
	{name: "a mute connection for calls is kept", test: "./locking/redislock TestMuteWire", edits: []edit{
		{"locking/redislock/wire.go", ` || silent > 0:`, `:`}}},
	{name: "a line has no last place", test: "./locking/redislock TestFullLine", edits: []edit{
		{"locking/redislock/line.lua", `if close_up(redis.call('ZCARD', line), now / 1000) >= most then return 0 end`, ``}}},
	{name: "a grant is answered with a list", test: "./locking/redislock TestFreeLockCosts", edits: []edit{
		{"locking/redislock/acquire.lua", `return give(owner, ttl + delay, now, server_run_id(), last, after, who)`, `return {1, give(owner, ttl + delay, now, server_run_id(), last, after, who)}`}}},
	{name: "a lock without a line is searched for one", test: "./locking/redislock TestFreeLockCosts", edits: []edit{
		{"locking/redislock/acquire.lua", `if not value and has_line(last[4], last[1], now) then`, `if not value then`}}},
	{name: "a grant whose WAIT is refused is nobody's", test: "./locking/redislock TestConfirmForbidden", edits: []edit{
		{"locking/redislock/confirm.go", `err = d.takeBack(ctx, keys, args[0], unknown)`, `err = unknown`}}},
	{name: "the dead keep their places in line", test: "./locking/redislock TestDeadInLine", edits: []edit{
		{"locking/redislock/line.lua", `if channel_of(redis.call('HGET', waiters, owner), ms) then break end`, `if owner then break end`}}},
	{name: "the dead are waiters", test: "./locking/redislock TestDeadInLine", edits: []edit{
		{"locking/redislock/owner.lua", `if channel_of(text, now) then`, `if text then`}}},
	{name: "one silent master hides the locks of all", test: "./locking/redislock TestClusterList", edits: []edit{
		{"locking/redislock/list.go", "\treturn locks, false, unread\n}", "\tif unread != nil {\n\t\treturn nil, false, unread\n\t}\n\treturn locks, false, nil\n}"}}},
	{name: "a slot that moves hides the locks of its master", test: "./locking/redislock TestClusterListWhileASlotMoves", edits: []edit{
		{"locking/redislock/list.go", `!redisconn.OfSlot(err)`, `true`}}},
	{name: "a grant that is to be confirmed does not follow its slot", test: "./locking/redislock TestClusterConfirmedFollows", edits: []edit{
		{"locking/redisconn/replicas.go", `now != nil {`, `now != nil && false {`}}},
	{name: "a suspension of the machine is read once", test: "./locking TestSuspensionIsReadAnew", edits: []edit{
		{"locking/slept_linux.go", `(ahead-l.ahead).Abs() < apart {`, `(ahead-l.ahead).Abs() >= 0 {`}}},
	{name: "a suspension is read in two pieces", test: "./locking TestSuspensionIsReadInOnePiece", edits: []edit{
		{"locking/slept_linux.go", `if mono-before < apart {`, `if mono-before < time.Hour {`}}},
	{name: "a hold that was left hides the one around it", test: "./locking TestReenterByTheContextOfOneThatWasLeft", edits: []edit{
		{"locking/reenter.go", ` && !c.lease.left() {`, ` {`}}},
	{name: "namespaces of locks share keys", test: "./locking/redisconn TestNamespacesAreApart", edits: []edit{
		{"locking/redisconn/namespace.go", `at < len(namespace) {`, `at < 0 {`}}},
	{name: "a service that forbids INFO grants nothing", test: "./locking/redislock TestTokensWithoutInfo", edits: []edit{
		{"locking/redisconn/token.lua", `redis.pcall('INFO', 'server')`, `redis.call('INFO', 'server')`}}},
	{name: "an old master's tokens win after a split", test: "./locking/redislock TestTokensOfASplit", edits: []edit{
		{"locking/redisconn/token.lua", `math.max(t + 1000000, now + guard)`, `math.max(t + 1, now)`}}},
	{name: "of a crowd most wait behind the others", test: "./locking/redlock TestCrowd", edits: []edit{
		{"locking/redlock/acquire.go", `d.lanes.enter(r.Name, r.Owner, len(d.masters), false)`, `d.lanes.enter(r.Name, r.Owner, len(d.masters), true)`}}},
	{name: "masters are new though one gives no answer", test: "./locking/redlock TestBootstrapBesideUnseen", edits: []edit{
		{"locking/redlock/bootstrap.go", ` && f.silent == 0 }`, ` }`}}},
	{name: "another's promise says that a grant is revoked", test: "./locking/redlock TestRevokedIsAnother", edits: []edit{
		{"locking/redlock/owner.go", ` && c.token == best.token`, ``}}},
	{name: "who waits for a straggler keeps others from being given back", test: "./locking TestStragglersKeepNobodyFromAsking", edits: []edit{
		{"locking/release.go", `if b.running-b.resting == mostReleases {`, `if b.running == mostReleases {`}}},
	{name: "a release that is not answered is given up", test: "./locking TestReleaseGoesOn", edits: []edit{
		{"locking/lease.go", `	if errors.Is(err, ErrUnreachable) {`, `	if errors.Is(err, ErrHeld) {`}}},
	{name: "Do does not say whether it ran", test: "./locking TestDo", edits: []edit{
		{"locking/locker.go", `fmt.Errorf("%w: %w", ErrNotReleased, released)`, `released`}}},
	{name: "a client without deadlines is taken", test: "./locking/redisconn TestCheck", edits: []edit{
		{"locking/redisconn/check.go", `if shorter < 0 {`, `if shorter < -1 {`}}},
	{name: "the password of sentinels is shown", test: "./cmd/escapement TestMaskedURLsReadBack", edits: []edit{
		{"cmd/escapement/address.go", `!values.Has(sentinelPassword)`, `values.Has(sentinelPassword)`}}},
}
