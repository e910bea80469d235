package agenda

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// A job that is removed during a claim of its tick, pending run or shard is not claimed again,
// whatever the answer is and whichever node registers it meanwhile, and it is forgotten. A new job
// of its name is another job.
func TestRemovedWhileAskedFor(t *testing.T) {
	for _, v := range []claim.Verdict{0, claim.Granted, claim.JobBusy, claim.Stale, claim.Opened, claim.Superseded, claim.Unknown} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(3, "job", "other")
			w.Config.Registrar = noRegistrar{}
			w.claims = make(chan *work.Batch, 9)
			w.Lanes = idle{claims: w.claims}
			j := w.jobs[0]
			registered := Registered{Jobs: []*work.Job{j}, Cursors: []int64{time.Now().UnixMilli()}}
			registered.apply(w.Agenda)
			w.fire()
			w.found(waits("job/1"), waits("job/2"), part("job/3", 0))
			w.fire()
			out := Changed{Removed: []*work.Job{j}}
			out.apply(w.Agenda)
			registered.apply(w.Agenda)
			anew := *j
			Changed{Added: []*work.Job{&anew}}.apply(w.Agenda)
			for range len(w.claims) {
				b := <-w.claims
				b.Answers, b.Started = make([]claim.Answer, len(b.Claims)), make([]bool, len(b.Claims))
				for i := range b.Answers {
					b.Answers[i] = claim.Answer{Verdict: v, Cursor: time.Now().UnixMilli()}
				}
				w.takeAnswers(b)
			}
			time.Sleep(time.Minute)
			w.fire()
			if len(w.claims) > 0 || w.states[j] != nil || w.byName["job"].Job != &anew || len(w.waiting) > 0 || w.Slots.Used() > 0 {
				t.Errorf("answer %v: %d claims, %d runs wait, %d slots are used, forgotten %v", v, len(w.claims), len(w.waiting), w.Slots.Used(), w.states[j] == nil)
			}
		})
	}
}

// A replaced job gives its name to its successor at once: runs found or ended from then on are the
// successor's.
func TestReplacedKeepsItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(3, "job", "other")
		old, anew := w.jobs[0], *w.jobs[0]
		Changed{Added: []*work.Job{&anew}}.apply(w.Agenda)
		Changed{Removed: []*work.Job{old}}.apply(w.Agenda)
		if s := w.byName["job"]; s == nil || s.Job != &anew || w.states[old] != nil || len(w.order) != 2 {
			t.Errorf("the name has %v, %d jobs", s, len(w.order))
		}
	})
}

// noRegistrar ignores rejected jobs.
type noRegistrar struct{}

func (noRegistrar) Rejected([]work.Rejection) {}
