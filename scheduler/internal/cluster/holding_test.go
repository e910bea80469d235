package cluster

import (
	"context"
	"fmt"
	"testing"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/sharding"
)

// A node's unreadable jobs may be any jobs, so an older build replaces none of these; for the
// node's other jobs it is certain whether the node holds them.
func TestHoldingThatCannotBeRead(t *testing.T) {
	const partitions = 4
	set, chunks, jobs := map[string]string{}, map[string]map[string]string{}, map[string]string{}
	for part := range partitions - 1 { // in the last one the node holds nothing
		for place := range 2 {
			c := define.Chunk{Part: part, Of: 2, Place: place, Digest: fmt.Sprint("chunk-", part, "-", place)}
			if back, ok := parseRef(refOf(c), partitions); !ok || back.Part != part || back.Of != 2 || back.Place != place {
				t.Fatalf("%s reads as %+v, %v", refOf(c), back, ok)
			}
			set[refOf(c)], chunks[c.Digest] = c.Digest, map[string]string{}
		}
	}
	for i := range 100 {
		job := fmt.Sprint("job-", i)
		jobs[job] = job + "-digest"
		if part := ledger.Partition(job, partitions); part < partitions-1 {
			chunks[fmt.Sprint("chunk-", part, "-", define.Place(job, 2))][job] = jobs[job]
		}
	}
	lost := chunks["chunk-1-0"]
	delete(chunks, "chunk-1-0")
	if len(lost) == 0 {
		t.Fatal("the lost chunk has no job")
	}
	h := known{chunks: chunks}.holding(set, partitions)
	c := &View{Nodes: []sharding.Node{{ID: "n", Set: "s"}}, Sets: map[string]*Holding{"s": h}}
	for job, want := range jobs {
		digest, known := h.Digest(job)
		if ledger.Partition(job, partitions) == partitions-1 {
			want = ""
		}
		if known != (lost[job] == "") || known && digest != want {
			t.Errorf("%s is held as %q, known: %v; want %q", job, digest, known, want)
		}
		if got := c.Announced(job, "another", "self", ""); got != !known {
			t.Errorf("%s: that another definition is held is said to be %v, known: %v", job, got, known)
		}
		if got := c.Knows(job); got != (!known || want != "") {
			t.Errorf("%s: that it is held is said to be %v", job, got)
		}
	}
	if h.Complete() || (*Holding)(nil).Complete() {
		t.Error("it is said to be whole")
	}
	for _, name := range []string{"", "1/2", "1/2/3", "4/1/0", "0/3/0", "-1/1/0", "0/0/0", "0/2/-1"} {
		if _, ok := parseRef(name, partitions); ok {
			t.Errorf("%q names a chunk", name)
		}
	}
}

// A known holding is not read again, and a holding that no node names any more is dropped.
func TestHoldingsReadOnce(t *testing.T) {
	old := known{
		sets:   map[string]map[string]string{"s": {"0/1/0": "c1", "1/1/0": "c2"}, "gone": {"0/1/0": "c3"}},
		chunks: map[string]map[string]string{"c1": {"a": "d"}, "c3": {"b": "d"}},
	}
	var asked map[int][]string
	all, now, unread, err := holdings(t.Context(), nil, 2, []sharding.Node{{ID: "n", Set: "s"}, {ID: "m", Set: "s"}}, old, everything,
		func(_ context.Context, wanted map[int][]string) (map[string]map[string]string, error) {
			asked = wanted
			return map[string]map[string]string{"c2": {"z": "d"}}, nil
		})
	if err != nil || unread != 0 || len(all) != 1 || !all["s"].Complete() || len(now.sets) != 1 || len(now.chunks) != 2 || fmt.Sprint(asked) != "map[1:[c2]]" {
		t.Errorf("%v, %+v, %d unread, %v; asked for %v", all, now, unread, err, asked)
	}
}
