package ledger

import (
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Keys are the ledger's keys, spelt here and nowhere else. ns is the namespace, p a partition; all
// keys of a partition share a hash tag, so a script touches one slot of a Cluster.
//
//	{ns}:control           hash   format, partitions; generation, epoch, promoting, move, see gate.go
//	{ns}:audit             list   what operators did, oldest first
//	{ns}:notified          hash   events sent for jobs that are not well, and waiting messages by target; see notified.go
//	{ns}:catalog           hash   job that is stored at run time -> its definition; see catalog.go
//	{ns}:catalogat         zset   job of the catalog by version
//	{ns}:catalogdropped    zset   job that was deleted from the catalog by version
//	{ns}:handlers          zset   handler that nodes have, and the shape of its payloads, by its last declaration, ms
//	{ns:p}:jobs            hash   job -> entry (cursor, definition's digest, token state, holder)
//	{ns:p}:defs            hash   digest -> definition, JSON, which names its job
//	{ns:p}:due             zset   job by cursor, ms
//	{ns:p}:runs            hash   run id -> lease record
//	{ns:p}:leases          zset   run id by until, ms
//	{ns:p}:pending         zset   run id by the time it may start, ms
//	{ns:p}:waiting         hash   run id -> pending record; and open ticks of sharded jobs, by their ids
//	{ns:p}:history:JOB     list   rows, oldest first
//	{ns:p}:recent          list   when rows were written, ms, and of which jobs, oldest first; the scripts spell it after kept
//	{ns:p}:kept            hash   run id -> its output, of a run that goes on so far; "p:", "s:" or "g:" and run id -> its payload, its checkpoint, its progress or what it waits for; all leave with the row
//	{ns:p}:cancels         hash   run id -> author and reason of its cancel flag
//	{ns:p}:pauses          hash   job -> who paused it, and why
//	{ns:p}:backfills       hash   job -> its backfill that is under way; see backfill.go
//	{ns:p}:backfilled      hash   job -> its last backfill that has ended
//	{ns:p}:unique          zset   run id by when the same request is a new run, ms
//	{ns:p}:followers       hash   job -> names of the jobs that follow it
//	{ns:p}:joins           hash   job -> its undecided ticks; job|tick -> how upstreams ended it; job|tick|upstream -> its result
//	{ns:p}:outbox          zset   ends of upstreams' ticks, by their time, ms
//	{ns:p}:anew            hash   job and digest -> whether the job was created lately, and the cursor that nodes reported; for a minute
//	{ns:p}:chunks          hash   digest -> which definitions of some jobs nodes hold; changes -> how often an announcement changed anything
//	{ns:p}:announced       zset   chunk, generation and revision of its nodes, by its last announcement, ms
//	{ns:p}:confirm         string nothing; written so that replicas have something to confirm, or to see whether writes are taken, for a second
//	{ns:p}:gate            string which generation makes new jobs, and whether a move has closed the partition
//	{ns:p}:incarnation     string id, another one each time that the partition was made, or lost records; see epoch.go
type Keys struct {
	Jobs, Defs, Due, Runs, Leases, Pending, Waiting, History string
	Kept, Cancels, Pauses, Unique, Followers, Joins, Outbox  string
	Anew, Chunks, Announced, Gate, Confirm, Recent           string
	Incarnation                                              string
	Backfills, Backfilled                                    string

	Tag string // what they begin with
}

// NamespaceTag begins the keys of a whole namespace, partitionTag the keys of a partition.
func NamespaceTag(ns string) string        { return "{" + ns + "}:" }
func partitionTag(ns string, p int) string { return "{" + ns + ":" + strconv.Itoa(p) + "}:" }

// SharedKeys are the keys of a whole namespace.
type SharedKeys struct{ Control, Audit, Notified, Catalog, CatalogAt, CatalogDropped, Handlers string }

// NamespaceKeys returns the keys of a namespace.
func NamespaceKeys(ns string) SharedKeys {
	tag := NamespaceTag(ns)
	return SharedKeys{
		Control: tag + "control", Audit: tag + "audit", Notified: tag + "notified", Handlers: tag + "handlers",
		Catalog: tag + "catalog", CatalogAt: tag + "catalogat", CatalogDropped: tag + "catalogdropped",
	}
}

// PartitionKeys returns the keys of a partition.
func PartitionKeys(ns string, p int) Keys {
	tag := partitionTag(ns, p)
	return Keys{
		Tag:  tag,
		Jobs: tag + "jobs", Defs: tag + "defs", Due: tag + "due", Runs: tag + "runs",
		Leases: tag + "leases", Pending: tag + "pending", Waiting: tag + "waiting", History: tag + "history:",
		Kept: tag + "kept", Cancels: tag + "cancels", Pauses: tag + "pauses", Unique: tag + "unique",
		Followers: tag + "followers", Joins: tag + "joins", Outbox: tag + "outbox", Chunks: tag + "chunks", Announced: tag + "announced", Gate: tag + "gate",
		Confirm: tag + "confirm", Anew: tag + "anew", Recent: tag + "recent", Incarnation: tag + "incarnation", Backfills: tag + "backfills", Backfilled: tag + "backfilled",
	}
}

// namedKeys are keys below a tag by their names. The name history stands for the history of the
// first item's job; histories for the histories of all items' jobs, in their order. Nearly all
// texts lie in one piece of memory.
func namedKeys(tag string, names []string, items int, job func(item int) string) []string {
	all := make([]string, 0, len(names)+items)
	var b strings.Builder
	b.Grow(len(names)*(len(tag)+9) + items*(len(tag)+48))
	add := func(name, job string) {
		at := b.Len()
		b.WriteString(tag)
		b.WriteString(name)
		b.WriteString(job)
		all = append(all, b.String()[at:])
	}
	for _, name := range names {
		switch name {
		case "history":
			add("history:", job(0))
		case "histories":
			for i := range items {
				add("history:", job(i))
			}
		default:
			add(name, "")
		}
	}
	return all
}

// Partition returns which of n partitions a job lives in.
func Partition(job string, n int) int {
	return int(xxhash.Sum64String(job) % uint64(n))
}

// The prefixes of the fields of a partition's kept that hold a run's checkpoint and progress; the
// run's id follows.
const (
	SavedField    = "s:"
	ProgressField = "g:"
)

// All are a partition's keys, without its histories.
func (k Keys) All() []string {
	return []string{k.Jobs, k.Defs, k.Due, k.Runs, k.Leases, k.Pending, k.Waiting,
		k.Kept, k.Cancels, k.Pauses, k.Unique, k.Followers, k.Joins, k.Outbox, k.Chunks, k.Announced, k.Gate, k.Incarnation, k.Confirm, k.Anew, k.Recent, k.Backfills, k.Backfilled}
}
