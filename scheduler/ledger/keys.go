package ledger

import (
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// Every key of the ledger is spelt here and nowhere else. ns is the namespace, p a partition;
// all keys of a partition share a hash tag, so a script touches one slot of a Cluster.
//
//	{ns}:control           hash   format, partitions
//	{ns:p}:jobs            hash   job -> entry (cursor, definition's digest, token state, holder)
//	{ns:p}:defs            hash   job -> definition, JSON
//	{ns:p}:due             zset   job by cursor, ms
//	{ns:p}:runs            hash   run id -> lease record
//	{ns:p}:leases          zset   run id by until, ms
//	{ns:p}:pending         zset   run id by the time it may start, ms
//	{ns:p}:waiting         hash   run id -> pending record
//	{ns:p}:history:JOB     list   rows, oldest first
type keys struct {
	jobs, defs, due, runs, leases, pending, waiting, history string
}

func controlKey(ns string) string { return "{" + ns + "}:control" }

func partitionKeys(ns string, p int) keys {
	tag := "{" + ns + ":" + strconv.Itoa(p) + "}:"
	return keys{
		jobs: tag + "jobs", defs: tag + "defs", due: tag + "due", runs: tag + "runs",
		leases: tag + "leases", pending: tag + "pending", waiting: tag + "waiting", history: tag + "history:",
	}
}

// Partition says in which of n partitions a job lives.
func Partition(job string, n int) int {
	return int(xxhash.Sum64String(job) % uint64(n))
}
