// Command torture runs real node processes on a real redis-server, does to them what happens to
// machines, and checks from a file that the jobs write whether the promises held.
//
//	go run ./cmd/torture [-scenario all|plain|kill|freeze|skew|outage|churn|control|failover|zombie|shard|hang|deploy|promote|move|broken]
//	                     [-seconds 60] [-nodes 3] [-jobs 20] [-keep] [-short] [-race] [-without] [-confirm]
//	go run ./cmd/torture -ignore revision|generation|seal
//
// # The sink
//
// Every job is a command that appends one line for each run, and a second one at the end of a
// run that lasts:
//
//	job tick token node run start|end nanoseconds shard/shards label
//
// The label comes from the configuration of the node that ran it, and says which code that was.
//
// The verifier (verify.go) knows the schedules as a list of seconds, reads this file and nothing
// else, and names what is wrong: DOUBLE, LOST, EARLY, LATE, TOKEN, PHANTOM, TOGETHER, MIXED. Only when
// a tick is not in the file is the ledger asked whether it recorded why (books.go), and only the
// reasons that the scenario can cause count. Afterwards the books must agree with the file, run
// by run and token by token, and every job's chain must close.
//
// # The scenarios
//
//	plain    no fault; the control of all others
//	kill     SIGKILL just before a full second; later another node, amid its starts
//	freeze   SIGSTOP to the node that carries a long run, for longer than its lease, then SIGCONT
//	skew     one node's clock 5 minutes ahead, another's 5 minutes behind
//	outage   Redis stopped and started again with its data
//	churn    200 jobs a second, HTTP calls to the sink, while nodes join, leave, are killed and freeze
//	failover 200 jobs a second as in churn, nodes that ask sentinels for the master, and SIGKILL to it
//	zombie   the same with SIGSTOP, and SIGCONT 1.5 s after a replica has taken the master's place
//	shard    the same as failover, on a Cluster, and SIGKILL to one of its three masters
//	hang     the same as zombie, on a Cluster, to one of its three masters
//	deploy   50 jobs a second through three rolling deploys without a pause, and a rollback of the last: revision and ttl,
//	         then schedules, ttl and shard counts, then these again, while an old node comes back
//	promote  two generations: promote, promote back, promote with SIGKILL to the command half way; then a retired node returns
//	move     from one server to a Cluster of another number of partitions, with SIGKILL to the command amid each step;
//	         a frozen node wakes up after that, and one is started that knows only the old address
//	broken   the guard removed: each node in a namespace of its own. The verifier must find
//	         every double run, and one planted fault of each other kind
//
// failover, zombie, shard, hang and move are left out of all with -short.
//
// In failover, zombie, shard and hang, writes that the master had acknowledged and not passed on are lost, which
// is the one thing that can make a tick run twice. So ticks due between 2 s before and 10 s after the fault may run twice, or have no record; they are counted and
// noted. All others are held to the usual rules, and the tokens of a job must grow always. -without builds the
// node so that it does not tell a new master what it runs (without.go): the difference is what that prevents.
// -confirm sets redis.confirm: replicas in failover and zombie, so that nothing begins which only the master has: with -without the
// difference is what that prevents.
//
// In deploy the ledger's own records say when one schedule gave way to the next. The verifier holds that against when nodes of
// both versions lived, and as many replacements as there were deploys that changed it; a tick may be recorded as superseded
// only then. At the sink an older definition that ran after a newer one is BACK, a generation that ran when it was not active
// STANDBY, and a run that started while no ledger was open MOVE. -ignore builds nodes without one guard, and holds
// only if the verifier finds that out: a definition that gives way to newer ones (deploy), one for each generation
// (promote), a seal (move, for the node that comes too late).
//
// At the end of each, every node that lives gets SIGTERM and must exit 0 within its drain time.
//
// # What a signal to a node does not reach
//
// A command runs in a process group of its own. When its node is killed or stopped, the command
// goes on: its line may be written although the ledger records the run as abandoned. That is
// one run still, of a tick that nobody else was granted. What it writes after its lease is
// over is for a guard that compares tokens to refuse; such lines are counted as stale. A node
// that froze between its last look at the lease and the start of the command finishes that start
// when it is resumed, and ends the command at once; what the command wrote until then counts too.
//
// The program exits 0 only if all of it holds. On failure it prints the first violations and
// keeps its work directory: the sink, the nodes' logs, Redis' data.
package main
