package lane

import (
	"context"
	"errors"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// joinsEvery is how often a node gives up the old ticks of jobs with several upstreams.
const joinsEvery = 10 * time.Minute

// joins gives up old ticks of jobs with several upstreams.
type joins struct {
	home      *link
	links     links
	jobs      *work.Jobs
	owns      func(j *work.Job) bool // this node owns a job
	takesWork func() bool

	left   []string  // jobs whose old ticks are to be given up
	listed time.Time // when left was filled
}

// giveUp gives up old ticks of jobs with several upstreams that this node owns, a job
// with each sweep. Without it they would stay until another tick of the job comes.
func (j *joins) giveUp(ctx context.Context, calls *masterCalls) {
	if j.listed.IsZero() {
		j.listed = time.Now()
	}
	if len(j.left) == 0 && time.Since(j.listed) >= joinsEvery {
		j.listed = time.Now()
		for _, job := range j.jobs.All() {
			if len(job.After) > 1 && j.owns(job) && j.links(job.Part) == j.home {
				j.left = append(j.left, job.Name)
			}
		}
	}
	if len(j.left) == 0 || !j.takesWork() {
		return
	}
	job := j.left[0]
	j.left = j.left[1:]
	calls.ask(ctx, job, func(ctx context.Context) error {
		err := follow.GiveUpJoins(ctx, j.home.ledger, job)
		if errors.Is(err, ledger.ErrClosed) {
			return nil
		}
		return err
	})
}
