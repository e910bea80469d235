package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/inspect"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
)

const (
	// deleteWithin is how long Delete waits until no node holds the job and no run of it is in flight.
	deleteWithin = 5 * time.Second
	// heldEvery is how often Delete reads which nodes still hold the job; nodes read the catalog
	// twice a second.
	heldEvery = 250 * time.Millisecond
)

// deleteJobs deletes jobs, and returns why some were not deleted, or not with their history.
func deleteJobs(ctx context.Context, c *conn, list []StoredJob) map[string]error {
	l, closed := c.openCatalog(ctx)
	why := make(map[string]error)
	for some := range slices.Chunk(list, ledger.CatalogPage) {
		failed, began := make(map[string]error), time.Now()
		if closed == nil {
			failed = dropStored(ctx, l, some)
		}
		for _, j := range some {
			err := cmp.Or(closed, failed[j.Name])
			switch {
			case err == nil:
				err = removeDropped(ctx, c, l, j.Name, began)
			case errors.Is(err, ErrUnknownJob):
				err = removeJob(ctx, c, l, j.Name)
			}
			why[j.Name] = err
		}
	}
	return why
}

// dropStored takes jobs out of the catalog, and returns why it did not take some: ErrUnknownJob for
// a job that is not there.
func dropStored(ctx context.Context, l *ledger.Ledger, list []StoredJob) (failed map[string]error) {
	failed = make(map[string]error)
	was := make(map[string]string, len(list))
	names := make([]string, len(list))
	for i, j := range list {
		names[i], was[j.Name] = j.Name, PutOptions{Was: j.Version}.was()
	}
	all := func(err error) map[string]error {
		for _, name := range names {
			failed[name] = cmp.Or(failed[name], err)
		}
		return failed
	}
	found, err := l.CatalogJobs(ctx, names...)
	if err != nil {
		return all(err)
	}
	var changes []ledger.CatalogChange
	for _, f := range found {
		if f.Definition == "" {
			failed[f.Job] = ErrUnknownJob
			continue
		}
		changes = append(changes, ledger.CatalogChange{Job: f.Job, Was: was[f.Job]})
	}
	if len(changes) == 0 {
		return failed
	}
	answers, err := l.ChangeCatalog(ctx, changes)
	if err != nil {
		return all(err)
	}
	for i, a := range answers {
		if !a.Done {
			failed[changes[i].Job] = fmt.Errorf("%w: delete job %s: %s; read it again", ErrRefused, changes[i].Job, standing(a))
		}
	}
	return failed
}

// removeDropped removes what the namespace has of a job that was taken out of the catalog, when no
// node holds the job any more and its runs have ended.
func removeDropped(ctx context.Context, c *conn, l *ledger.Ledger, name string, began time.Time) error {
	for ; ; wait.For(ctx, heldEvery) {
		held, err := inspect.HeldStored(ctx, l, c.roster(), name)
		switch {
		case err != nil:
			return err
		case len(held) == 0:
			done, err := removeEntry(ctx, l, name)
			inFlight := errors.Is(err, ErrRefused) && ctx.Err() == nil && time.Since(began) <= deleteWithin
			if done || err != nil && !inFlight {
				return err
			}
		case ctx.Err() != nil || time.Since(began) > deleteWithin:
			return fmt.Errorf("%w: job %s is deleted, and nothing more is claimed; its history stays, for %s still hold it: delete it again", ErrRefused, name, strings.Join(held, ", "))
		}
	}
}

// removeEntry removes the entry of a stored job, with its history. It reports whether there is none
// any more: a program may have registered a job of that name meanwhile, and that one stays. False
// when the entry has just changed.
func removeEntry(ctx context.Context, l *ledger.Ledger, name string) (bool, error) {
	s, err := l.Job(ctx, name)
	if errors.Is(err, ErrUnknownJob) { // never registered
		return true, nil
	}
	if err == nil {
		if d, unreadable := jobs.ParseDefinition(s.Definition); unreadable == nil && d.Stored == 0 {
			return true, nil
		}
		var done bool
		if done, err = l.RemoveDefined(ctx, name, s.Digest); err == nil || errors.Is(err, ErrUnknownJob) {
			return done || err != nil, nil
		}
	}
	return false, fmt.Errorf("job %s is deleted; its history stays, delete it again: %w", name, err)
}
