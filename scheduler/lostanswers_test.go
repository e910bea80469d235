package scheduler_test

import (
	"errors"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

// What a person asks for once more, because the answer got lost, is done once.
func TestOperatingWithLostAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		job, warm := eachSecond("job", s), eachSecond("warm", s)
		job.Schedule, warm.Schedule = "* * * * *", "* * * * *"
		n := c.start("a", scheduler.Config{}, job, warm)
		time.Sleep(5*time.Minute + 10*time.Second)
		var network redistest.Net
		client := network.Client(server.Options())
		defer client.Close()
		i, err := scheduler.NewInspector(client, "")
		if err != nil {
			t.Fatal(err)
		}
		to := time.Now().Add(-3 * time.Minute).Truncate(time.Minute)
		steps := func(list ...lossy) {
			for _, step := range list {
				if err := step.do(i, "warm"); err != nil { // the server knows the scripts now
					t.Fatal(step.what, err)
				}
				network.LoseReplies(1, step.word)
				refused(t, step.do(i, "job"), locking.ErrUnreachable)
				if network.Losing() != 0 {
					t.Errorf("%s: the fault did not happen", step.what)
				}
				if err := step.do(i, "job"); !errors.Is(err, step.again) {
					t.Errorf("%s, asked again: %v, want %v", step.what, err, step.again)
				}
			}
		}
		run := ledger.UniqueRun("job", "u")
		steps(lossy{"run", "\r\njob\r\n$36\r\n" + run, nil, func(i *scheduler.Inspector, job string) error {
			_, err := i.Trigger(t.Context(), job, scheduler.TriggerOptions{At: time.Now().Add(time.Hour), Unique: "u"})
			return err
		}}, lossy{"cancel", "author-job", nil, func(i *scheduler.Inspector, job string) error {
			_, err := i.Cancel(t.Context(), ledger.UniqueRun(job, "u"), scheduler.CancelOptions{Author: "author-" + job})
			return err
		}}, lossy{"rerun", ledger.Successor(run), nil, func(i *scheduler.Inspector, job string) error {
			_, err := i.Rerun(t.Context(), ledger.UniqueRun(job, "u"))
			return err
		}})
		time.Sleep(5 * time.Second)
		steps(lossy{"pause", "author-job", nil, func(i *scheduler.Inspector, job string) error {
			return i.Pause(t.Context(), job, scheduler.PauseOptions{Author: "author-" + job, Reason: "so that the cursor stays"})
		}})
		c.leave(n)
		steps(lossy{"rewind", job.Definition().Digest(), scheduler.ErrRefused, func(i *scheduler.Inspector, job string) error {
			_, err := i.Rewind(t.Context(), job, to)
			return err
		}})
		if v := must[scheduler.JobView](t)(i.Job(t.Context(), "job")); !time.Time(*v.Next).Equal(to) {
			t.Errorf("it stands at %s, want %s", v.Next, to)
		}
		steps(lossy{"resume", "\r\nresume\r\n", nil, func(i *scheduler.Inspector, job string) error { return i.Resume(t.Context(), job) }})
		got := outcomes(c.runs("job"))
		if got["superseded(rewound)"] != 1 || got["cancelled(cancelled by author-job)"] != 1 || got["succeeded"] != 6 || len(got) != 3 {
			t.Errorf("history %v", got)
		}
		steps(lossy{"remove", ":due\r\n", scheduler.ErrUnknownJob, func(i *scheduler.Inspector, job string) error { return i.Remove(t.Context(), job) }})
	})
}

// lossy is a request whose answer gets lost: that of what is sent with the word in it.
type lossy struct {
	what, word string
	again      error // what it is answered when it is made again
	do         func(i *scheduler.Inspector, job string) error
}
