// Package ticks measures schedulers in processes as they are deployed: a redis-server and some
// nodes, each a process, with jobs that are all due at each second. The contenders take turns, so
// that other work of the machine hits all alike.
//
// A measured process is this program once more. It receives on stdin the beginning and the end of
// the measured time, and answers with each start of a job that it saw.
package ticks
