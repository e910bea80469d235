// Command peerbench measures Escapement beside other libraries, in one run on one
// machine, because figures from different days and machines cannot be compared.
// It is a module of its own, so that nobody else downloads its peers.
//
//	go run .             locks: an uncontended acquire and release, and a hand-over among contenders
//
// It starts a redis-server on a free loopback port, and ends it.
package main
