// Command tickbench measures how late ticks start and what they cost, in
// processes as they are deployed: one redis-server and some nodes, each a process,
// with many jobs that are all due at each second.
//
//	go run ./cmd/tickbench                              1, 1,000 and 10,000 jobs a second on three nodes
//	go run ./cmd/tickbench -jobs 10000 -slots 8000      nodes with slots for all that is due at once
//
// In the same run it measures robfig/cron alone, in one process and with no lock: what
// the machine and the Go runtime take by themselves. Figures of different days
// and machines cannot be compared; the ratio of two lines of one run can.
//
// The exit code is 1 when a tick ran twice or not at all.
package main
