// Command escapement is the node and the operator's tool.
//
// As a node (run) it reads config.yaml, registers every job of it with the scheduler and serves the
// health endpoints until it is stopped; dev does the same with several nodes and an embedded Redis
// in one process. As a tool (jobs, runs, nodes, locks, ledger) it reads the nodes' records in
// Redis, and stores an operator's orders: runs, pauses, ends. generations makes another deployed
// cluster active, move takes a namespace to another Redis. lock runs a command under a
// business lock. cron works without Redis and configuration.
//
// YAML, flags and environment variables are confined to the programs. A setting is looked up in one
// order: flag, environment, file, default. The whole configuration is judged before anything is
// connected or written, and every fault is reported at once, each with the place it came from.
//
// # Streams and exit codes
//
// Data goes to stdout, words to stderr; there are no colours.
//
//	0  done
//	1  failed
//	2  usage: an unknown command, flag or argument
//	3  bad configuration
//	4  not found: no such job, run or namespace
//	5  refused, for a reason that stderr names
//	6  Redis unreachable
//	7  the awaited run did not succeed
//	75 lock: the lock was lost before it could be given back; otherwise lock ends with the
//	   command's code, with 126 or 127 when there is no such command, or with 128
//	   and the number of the signal that ended it
//
// # Stopping
//
// The first SIGINT or SIGTERM drains: work is handed over, runs may end within node.drain_timeout
// and are then cancelled. A second signal exits at once with code 1.
//
// # Moving
//
// A node with redis.next goes on in that Redis, in the same process, when the namespace has moved
// there: another scheduler.Node succeeds the scheduler.Node that has returned ErrMoved.
package main
