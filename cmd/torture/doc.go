// Command torture runs real node processes on a real redis-server, does to them what happens to
// machines, and checks from a file that the jobs write whether the promises held.
//
//	go run ./cmd/torture [-scenario all|plain|kill|freeze|skew|outage|churn|control|failover|zombie|broken]
//	                     [-seconds 60] [-nodes 3] [-jobs 20] [-keep] [-short] [-race] [-without]
//
// # The sink
//
// Every job is a command that appends one line for each run, and a second one at the end of a
// run that lasts:
//
//	job tick token node run start|end nanoseconds
//
// The verifier (verify.go) knows the schedules as a list of seconds, reads this file and nothing
// else, and names what is wrong: DOUBLE, LOST, EARLY, LATE, TOKEN, PHANTOM, TOGETHER. Only when
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
//	broken   the guard removed: each node in a namespace of its own. The verifier must find
//	         every double run, and one planted fault of each other kind
//
// failover and zombie are left out of all with -short. Writes that the master had acknowledged and
// not passed on are lost in them, which is the one thing that can make a tick run twice. So ticks due
// between 2 s before and 10 s after the fault may run twice, or have no record; they are counted and
// noted. All others are held to the usual rules, and the tokens of a job must grow always. -without builds the
// node so that it does not tell a new master what it runs (without.go): the difference is what that prevents.
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
