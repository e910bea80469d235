// Command torture runs real node processes on a real redis-server, puts them under the faults of
// real machines, and checks from a file that the jobs write whether the promises held.
//
//	go run ./cmd/torture [-scenario all|plain|kill|freeze|outage|emptied|churn|failover|zombie|masters|broken]
//	                     [-seconds 60] [-keep] [-short] [-race] [-confirm]
//
// # The sink
//
// Every job is a command that appends one line for each run, and a second one at the end of a run
// that lasts:
//
//	job tick token node run start|end nanoseconds
//
// When all nodes have ended, sink and books become one case (case.go) for the judge,
// schedtest/judge, which decides about all promises: which ticks were due and when, double and
// missing runs, late starts, tokens, overlap, and whether each recorded reason is true. The case
// lists the scenario's faults: which node was killed, frozen or stopped, and when Redis was away or
// lost writes.
//
// This program itself checks the evidence that only it has: exit codes and runs that are left open
// (EXIT, OPEN), and how a resumed node reacts (RESUME).
//
// # The scenarios
//
//	plain    no fault; the control of all other scenarios
//	kill     SIGKILL just before a full second; later another node, amid its starts
//	freeze   SIGSTOP to the node that carries a long run, for longer than its lease, then SIGCONT: its command ends in time
//	outage   Redis stopped and started again with its data
//	emptied  Redis restarts without its data while all nodes but one are stopped, for 1 s longer; then it is emptied each 150 ms for 3 s
//	churn    200 jobs a second, HTTP calls to the sink, while nodes join, leave, are killed and freeze
//	failover 200 jobs a second as in churn, nodes that find the master by sentinels, and SIGKILL to it
//	zombie   the same with SIGSTOP, and SIGCONT 1.5 s after a replica has taken the master's place
//	masters  the same load on a Cluster, of which one master after another has a slot moved, is full, gets SIGSTOP, and SIGKILL;
//	         half of the runs at the other masters, and 99 in 100, start at most 20 ms later (DELAYED)
//	broken   each node in a namespace of its own. The judge must find every double run
//
// emptied, failover, zombie and masters are left out of all with -short, which judges no time:
// other work may keep the machine busy.
//
// In failover, zombie and masters, writes that the master had acknowledged and not passed on are
// lost, which is the one thing that can make a tick run twice. So ticks around the fault may run
// twice, or have no record; they are counted and noted. The usual rules hold for all other ticks,
// and the tokens of a job must always grow. -confirm sets redis.confirm: replicas in failover and
// zombie, so that nothing begins which only the master has.
//
// At the end of each scenario, every living node gets SIGTERM and must exit 0 within its drain
// time.
//
// # Commands outlive a signal to their node
//
// A command runs in a process group of its own. When its node is killed or stopped, the command
// goes on: its line may be written although the ledger records the run as abandoned. It is still
// one run, of a tick that no other node was granted. A guard that compares tokens refuses its
// writes after the lease is over; such lines are counted as stale. A node that froze between its
// last look at the lease and the start of the command finishes that start when it is resumed, and
// ends the command at once; lines written until then count too.
//
// The program exits 0 only if all checks pass. On failure it prints the first findings and keeps
// its work directory: the sink, the nodes' logs, Redis' data.
package main
