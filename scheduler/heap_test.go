package scheduler

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/escapement/escapement/jobs"
)

func TestAgendaAgainstAPlainList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a agenda
		all := make([]*job, 20)
		for i := range all {
			all[i] = &job{index: i, place: -1}
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			j := all[rapid.IntRange(0, len(all)-1).Draw(t, "job")]
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				a.put(j, int64(rapid.IntRange(0, 50).Draw(t, "at")))
			case 1:
				a.drop(j)
			case 2:
				if first := a.first(); first != nil {
					for _, other := range all {
						if other.place >= 0 && (other.at < first.at || other.at == first.at && other.index < first.index) {
							t.Fatalf("first is job %d at %d, there is job %d at %d", first.index, first.at, other.index, other.at)
						}
					}
					if a.take() != first || first.place != -1 {
						t.Fatal("take is not first")
					}
				}
			}
			for i, k := range a {
				if k.place != i {
					t.Fatalf("job at %d thinks it is at %d", i, k.place)
				}
			}
		}
	})
}

// BenchmarkAgenda is a tick of an engine with 100,000 jobs: take the first, plan it, put it back.
func BenchmarkAgenda(b *testing.B) {
	const n = 100_000
	schedule, err := jobs.ParseSchedule("* * * * * *", "")
	if err != nil {
		b.Fatal(err)
	}
	var a agenda
	began := time.Now()
	for i := range n {
		a.put(&job{Job: jobs.Job{Name: fmt.Sprint("job-", i)}, schedule: schedule, index: i, place: -1, cursor: 1_763_726_400_000}, 1_763_726_400_000+int64(i%1000))
	}
	added := time.Since(began)
	b.ReportAllocs()
	for b.Loop() {
		j := a.take()
		j.cursor = plan(j.Job, j.schedule, j.cursor, j.outlook, j.cursor).next
		a.put(j, j.cursor)
	}
	b.ReportMetric(added.Seconds(), "s-to-add-100k")
}
