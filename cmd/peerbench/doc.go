// Command peerbench measures Escapement beside other libraries, in one run on one machine, because
// figures from different days and machines cannot be compared. It is a module of its own, so that
// users of the other modules do not download its peers.
//
//	go run . ticks       scheduled jobs: did each tick run once, how late, and for what
//	go run . locks       locks: an uncontended acquire and release, and a hand-over among contenders
//	go run . scale       a namespace with very many jobs: starts, memory, lists
//	go run . table       the table of docs/benchmarks.md, from the figures of an earlier run
//
// Each prints its flags with -help. It starts redis-servers on free loopback ports, and ends them.
//
// The exit code of ticks is 1 when Escapement did not run each tick once, or started one before it
// was due.
package main
