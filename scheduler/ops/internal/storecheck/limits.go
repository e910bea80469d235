package storecheck

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/catalog"
)

// limitPages bounds the part of the catalog with which the limits of jobs to be stored are
// compared, in pages of ledger.CatalogPage.
const limitPages = 20

// checkLimits checks that jobs to be stored give the same limit to their group as each other, and
// as the stored jobs that were changed the longest ago.
func checkLimits(ctx context.Context, l *ledger.Ledger, list []jobs.Job) error {
	put := make(map[string]bool, len(list))
	first := make(map[string]jobs.Job) // of each group
	var faults []error
	differs := func(j jobs.Job, other string, most int) {
		faults = append(faults, fmt.Errorf("%w: put job %s: %w", ledger.ErrRefused, j.Name, &jobs.FieldError{Field: "limit.max", Msg: fmt.Sprintf(
			"%d, and %d at job %q; give all jobs of group %q the same, in the same call", j.Limit.Max, most, other, j.Limit.Group)}))
	}
	for _, j := range list {
		put[j.Name] = true
		switch of, some := first[j.Limit.Group]; {
		case j.Limit.Group == "":
		case !some:
			first[j.Limit.Group] = j
		case of.Limit.Max != j.Limit.Max:
			differs(j, of.Name, of.Limit.Max)
		}
	}
	for page, end := 0, int64(0); page < limitPages && len(first) > 0; page++ {
		c, err := catalog.Since(ctx, l, end)
		if err != nil {
			return err
		}
		for _, s := range c.Jobs {
			if put[s.Job] || !strings.Contains(s.Definition, `"limit_group"`) {
				continue
			}
			d, err := jobs.ParseDefinition([]byte(s.Definition))
			if j, same := first[d.Limit.Group]; err == nil && same && j.Limit.Max != d.Limit.Max {
				differs(j, s.Job, d.Limit.Max)
				delete(first, d.Limit.Group)
			}
		}
		if end = c.End; c.End >= c.Last {
			break
		}
	}
	return errors.Join(faults...)
}
