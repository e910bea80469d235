//go:build mutants

package schedtest_test

const (
	outletGo   = "cmd/escapement/outlet.go"
	sentinelGo = "cmd/escapement/sentinel.go"
	sigpipe    = "signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)"
)

// What the program does beside the library.
var programs = []mutant{
	{name: "a node waits for the reader of its log", test: "./cmd/escapement TestOutletThatHangs", edits: []edit{
		{outletGo, "\to.confess()\n\to.push(outletLine{text: bytes.Clone(p), lines: 1})\n", "\to.confess()\n\t_, _ = o.out.Write(bytes.Clone(p))\n"}}},
	{name: "the log is held without bound", test: "./cmd/escapement TestOutletThatHangs", edits: []edit{
		{outletGo, `if o.size+len(p) > outletMax {`, `if o.size+len(p) < 0 {`}}},
	{name: "nobody says that lines are missing", test: "./cmd/escapement TestOutletWithoutAReader", edits: []edit{
		{outletGo, `if o.lost == 0 {`, `if o.lost >= 0 {`}}},
	{name: "the end of the program waits for the reader of its log", test: "./cmd/escapement TestOutletThatHangs", edits: []edit{
		{outletGo, `case <-time.After(outletFlush):`, `case <-time.After(2 * outletFlush):`}}},
	{name: "a log that nobody reads ends the node", test: "./cmd/escapement TestNobodyReads", edits: []edit{
		{outletGo, sigpipe, `signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)`}}},
	{name: "commands live on after SIGPIPE", test: "./cmd/escapement TestNobodyReads", edits: []edit{
		{outletGo, sigpipe, "_ = os.Args\n\tsignal.Ignore(syscall.SIGPIPE)"}}},
	{name: "sentinels are told the master's password", test: "./cmd/escapement TestSentinelOptions", edits: []edit{
		{sentinelGo, `SentinelPassword: r.SentinelPassword,`, `SentinelPassword: o.Password,`}}},
	{name: "sentinels are told no password", test: "./cmd/escapement TestSentinelPassword", edits: []edit{
		{sentinelGo, `SentinelPassword: r.SentinelPassword,`, ``}}},
	{name: "who asks for a password is not said", test: "./cmd/escapement TestSentinelPassword", edits: []edit{
		{"cmd/escapement/client.go", `if who := guarded(at); who != "" {`, `if who := guarded(at); who != "" && false {`}}},
	{name: "the sentinels' password is printed", test: "./cmd/escapement TestSentinelPasswordIsForSentinels", edits: []edit{
		{"cmd/escapement/print.go", `s.Redis.SentinelPassword = masked`, `s.Redis.SentinelPassword = c.Redis.SentinelPassword`}}},
	{name: "a lock's call waits for servers of a Cluster that hang", test: "./cmd/escapement TestMuteServersOfACluster", edits: []edit{
		{"cmd/escapement/lockcmd.go", `redisconn.Meet(ctx, client)`, `_ = redisconn.Meet`}}},
	{name: "a command begins under a lock that is lost", test: "./cmd/escapement TestLockLostBeforeTheCommand", edits: []edit{
		{"cmd/escapement/lockrun.go", `if u.lease.Context().Err() != nil { // we did not`, `if false { // we did not`}}},
	{name: "what a command left behind works on without the lock", test: "./cmd/escapement TestClearWhenTheLockIsLost", edits: []edit{
		{"cmd/escapement/lockrun.go", `case u.killAt.IsZero(): // the command had ended before anybody looked`, `case u.killAt.IsZero():
		return`}, {"cmd/escapement/lockrun.go", `		u.lose()
		fallthrough
	default:`, `	default:`}}},
	{name: "a command job's rest is given up before it is killed", test: "./jobs/execjob TestClearKillsAfterAStandstill", edits: []edit{
		{"jobs/execjob/group_unix.go", `case !killed.IsZero() && time.Since(killed) > killTakes:`, `case time.Since(deadline) > killTakes:`}}},
	{name: "a call is repeated on another connection", test: "./jobs/httpjob TestSentOnce", edits: []edit{
		{"jobs/httpjob/httpjob.go", `if safe || `, `if false && safe || `}}},
	{name: "a tag in place of a secret is told", test: "./cmd/escapement TestFaults/secrets", edits: []edit{
		{"cmd/escapement/decode.go", `case secret: // the tag`, `case false: // the tag`}}},
}
