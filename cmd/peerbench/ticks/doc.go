// Package ticks measures schedulers in processes as they are deployed: a
// redis-server and some nodes, each a process, with jobs that are all due at each
// second. The contenders take turns, so that what else the machine does hits all alike.
//
// A measured process is this program once more. It is told on stdin when the
// measured time begins and ends, and answers with each start of a job that it saw.
package ticks
