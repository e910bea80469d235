package inspect

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// Few is how many jobs a namespace may have so that all are read for any question: then the owners
// are known exactly.
const Few = 1000

// Page is a part of the jobs, by name, or all jobs.
type Page struct {
	Jobs  []query.Stored
	Whole bool // Jobs are all jobs, or all readable jobs
}

// Around reads the named jobs, or all where there are few.
func Around(ctx context.Context, l *ledger.Ledger, names []string) (Page, error) {
	n, parts, left := query.Count(ctx, l)
	if left != nil && !unreachable(left) {
		return Page{}, left
	}
	if n <= Few {
		all, err := query.JobsIn(ctx, l, parts)
		return Page{all, true}, besides(left, err)
	}
	all, err := query.Named(ctx, l, names)
	return Page{Jobs: all}, besides(left, err)
}

// ReadPage lists the jobs whose names contain match, in any case, behind the name after: at most
// limit, 0 for all. around has the further jobs on which their owners depend. next is the last name
// of the page where more jobs are behind it, also when that job was removed meanwhile. With an
// UnreachableError, the jobs of the reachable partitions are returned too.
func ReadPage(ctx context.Context, l *ledger.Ledger, match, after string, limit int) (shown []query.Stored, around Page, next string, err error) {
	n, parts, left := query.Count(ctx, l)
	if left != nil && !unreachable(left) {
		return nil, around, "", left
	}
	if n <= Few || limit == 0 {
		around.Jobs, err = query.JobsIn(ctx, l, parts)
		around.Whole = true
		from, same := slices.BinarySearchFunc(around.Jobs, after, func(s query.Stored, name string) int { return strings.Compare(s.Job, name) })
		if same {
			from++
		}
		shown = around.Jobs[from:]
		if match != "" {
			shown = slices.DeleteFunc(slices.Clone(shown), func(s query.Stored) bool { return !matches(s.Job, match) })
		}
		if limit > 0 && len(shown) > limit {
			shown, next = shown[:limit], shown[limit-1].Job
		}
		return shown, around, next, besides(left, err)
	}
	names, err := query.Names(ctx, l, parts)
	if left = besides(left, err); left != nil && !unreachable(left) {
		return nil, around, "", left
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name <= after || match != "" && !matches(name, match) })
	slices.Sort(names)
	if len(names) > limit {
		names, next = names[:limit], names[limit-1]
	}
	around.Jobs, err = query.Named(ctx, l, names)
	return around.Jobs, around, next, besides(left, err)
}

func matches(name, part string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(part))
}

// besides is the error returned with a list that lacks partitions, or in place of a list.
func besides(left, err error) error {
	if err != nil && !unreachable(err) {
		return err
	}
	return errors.Join(left, err)
}

func unreachable(err error) bool { return errors.As(err, new(*ledger.UnreachableError)) }
