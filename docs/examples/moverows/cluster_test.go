//go:build unix

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
	"github.com/escapement/escapement/sharding"
)

const rows = 20_000

// Three processes share a tick of 16 shards. The busiest process is killed when three rows in ten
// are moved. The other two end its shards, each row is moved once, and a late write is refused.
func TestOneOfThreeNodesIsKilled(t *testing.T) {
	server := redistest.Start(t)
	path := filepath.Join(t.TempDir(), "rows.db")
	table := newTable(t, path)
	i, err := ops.New(server.Client(t), "")
	if err != nil {
		t.Fatal(err)
	}
	bin, nodes := buildProgram(t), make(map[string]*process)
	for _, name := range []string{"a", "b", "c"} {
		nodes[name] = startNode(t, bin, name, "-db", path, "-redis", server.Addr(), "-schedule", "@every 5s", "-pause", "250ms")
	}
	watch := func(what string, happened func() bool) {
		t.Helper()
		wait(t, what, func() bool {
			for _, p := range nodes {
				p.alive(t)
			}
			return happened()
		})
	}

	// When all nodes are up, one tick over an empty table; then the rows, all for the next tick.
	watch("three nodes", func() bool {
		all, err := i.ListNodes(t.Context())
		return err == nil && len(all) == 3
	})
	now, err := i.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	watch("tick with all nodes", func() bool { return ticks(t, i, now) > 0 })
	if err := table.fill(t.Context(), rows); err != nil {
		t.Fatal(err)
	}

	watch("30 % moved", func() bool { return table.number(t, `SELECT count(*) FROM target`) >= rows*3/10 })
	var victim string
	busiest := `SELECT node FROM target GROUP BY node ORDER BY count(*) DESC, node LIMIT 1`
	if err := table.db.QueryRowContext(t.Context(), busiest).Scan(&victim); err != nil {
		t.Fatal(err)
	}
	nodes[victim].kill(t)
	delete(nodes, victim)
	early := table.number(t, `SELECT count(*) FROM target`)
	tick := time.UnixMilli(int64(table.number(t, `SELECT min(tick) FROM target`)))

	var whole ops.RunView
	watch("end of the tick", func() bool {
		whole = wholeRow(t, i, tick)
		return whole.Whole && whole.Outcome != jobs.OutcomeRunning
	})
	if whole.Outcome != jobs.OutcomeSucceeded || whole.Shards != shards {
		t.Errorf("the tick: %+v", whole)
	}
	t.Logf("node %s killed after %d rows; the tick ended after %d ms", victim, early, whole.Duration.Milliseconds())
	checkRows(t, table, tick)
	checkBooks(t, i, tick, victim)
	checkLate(t, table)
	for _, p := range nodes {
		p.stop(t)
	}
}

// ticks counts the ticks after an instant that have succeeded as a whole.
func ticks(t *testing.T, i *ops.Client, after time.Time) (n int) {
	t.Helper()
	for _, r := range moves(t, i, after) {
		if r.Whole && r.Outcome == jobs.OutcomeSucceeded {
			n++
		}
	}
	return n
}

func wholeRow(t *testing.T, i *ops.Client, tick time.Time) ops.RunView {
	t.Helper()
	for _, r := range moves(t, i, tick) {
		if r.Whole && r.Tick.Equal(tick) {
			return r
		}
	}
	return ops.RunView{}
}

func moves(t *testing.T, i *ops.Client, since time.Time) []ops.RunView {
	t.Helper()
	all, err := i.ListRuns(t.Context(), ops.RunFilter{Job: "move-rows", Since: since})
	if err != nil && !errors.Is(err, ops.ErrUnknownJob) { // no node has registered it yet
		t.Fatal(err)
	}
	return all.Items
}

// checkRows reads only the tables.
func checkRows(t *testing.T, table *table, tick time.Time) {
	t.Helper()
	for _, c := range []struct {
		what, query string
		least, most int
	}{
		{"rows in source", `SELECT count(*) FROM source`, 0, 0},
		{"rows in target", `SELECT count(*) FROM target`, rows, rows},
		{"different ids", `SELECT count(DISTINCT id) FROM target`, rows, rows},
		{"first id", `SELECT min(id) FROM target`, 1, 1},
		{"last id", `SELECT max(id) FROM target`, rows, rows},
		{"rows that are not what they were", `SELECT count(*) FROM target WHERE body <> 'row ' || id`, 0, 0},
		{"rows of other ticks", fmt.Sprintf(`SELECT count(*) FROM target WHERE tick <> %d`, tick.UnixMilli()), 0, 0},
		{"shards", `SELECT count(DISTINCT shard) FROM target`, shards, shards},
		{"nodes", `SELECT count(DISTINCT node) FROM target`, 2, 3},
		{"shards that more than one run moved", `SELECT count(*) FROM (SELECT shard FROM target GROUP BY shard HAVING count(DISTINCT token) > 1)`, 1, shards},
		{"shards with an older token after a newer one", `SELECT count(DISTINCT shard) FROM
			(SELECT shard, token < lag(token) OVER (PARTITION BY shard ORDER BY id) AS back FROM target) WHERE back`, 0, 0},
	} {
		if n := table.number(t, c.query); n < c.least || n > c.most {
			t.Errorf("%s: %d, want %d to %d", c.what, n, c.least, c.most)
		}
	}
	for shard := range shards {
		lo, hi := sharding.Split(1, rows+1, shard, shards)
		if n := table.number(t, `SELECT count(*) FROM target WHERE (id >= ? AND id < ?) <> (shard = ?)`, lo, hi, shard); n != 0 {
			t.Errorf("shard %d: %d rows are moved by another one, or not its own", shard, n)
		}
	}
}

// checkBooks reads Redis: the dead node's runs were abandoned, and a second attempt ended each of
// them on another node.
func checkBooks(t *testing.T, i *ops.Client, tick time.Time, victim string) {
	t.Helper()
	abandoned, again := 0, 0
	for _, r := range moves(t, i, tick) {
		switch {
		case r.Whole || !r.Tick.Equal(tick):
		case r.Outcome == jobs.OutcomeAbandoned && r.Node == victim:
			abandoned++
		case r.Outcome == jobs.OutcomeSucceeded && r.Attempt > 1 && r.Node != victim:
			again++
		}
	}
	if abandoned == 0 || again < abandoned {
		t.Errorf("%d shards of node %s abandoned, %d run again by others", abandoned, victim, again)
	}
	books, err := i.Verify(t.Context(), ops.VerifyFilter{})
	if err != nil || len(books.Violations)+len(books.UnknownFormat) > 0 {
		t.Errorf("the books: %v %v %v", books.Violations, books.UnknownFormat, err)
	}
}

// checkLate writes to each shard with a token just below the stored one, and with the stored one.
func checkLate(t *testing.T, table *table) {
	t.Helper()
	if err := table.fill(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for shard := range shards {
		seen := int64(table.number(t, `SELECT token FROM fence WHERE shard = ?`, shard))
		late := jobs.NewRun(jobs.RunInfo{Shard: shard, Shards: shards, Token: seen - 1, Node: "late"})
		if n, err := table.batch(t.Context(), late, rows+1, rows+2); n != 0 || !errors.Is(err, errStale) {
			t.Errorf("shard %d: a late run moved %d rows: %v", shard, n, err)
		}
	}
	if n := table.number(t, `SELECT count(*) FROM source`); n != 1 {
		t.Errorf("%d rows in source after the late runs, want the one that they did not get", n)
	}
	seen := int64(table.number(t, `SELECT token FROM fence WHERE shard = 0`))
	if n, err := table.batch(t.Context(), shardRun(0, seen), rows+1, rows+2); n != 1 || err != nil {
		t.Errorf("a run with the token that was seen moved %d rows: %v", n, err)
	}
}
