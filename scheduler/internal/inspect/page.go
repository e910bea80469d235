package inspect

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// Few is how many jobs a namespace may have so that all are read, whichever are asked for: then it is known exactly who goes first.
const Few = 1000

// Some is some jobs, by name, or all there are.
type Some struct {
	Jobs  []ledger.Stored
	Whole bool // they are all, or all that can be read
}

// Around reads the named jobs, or all where there are few.
func Around(ctx context.Context, l *ledger.Ledger, names []string) (Some, error) {
	n, parts, left := l.Count(ctx)
	if left != nil && !unreachable(left) {
		return Some{}, left
	}
	if n <= Few {
		all, err := l.JobsIn(ctx, parts)
		return Some{all, true}, errors.Join(left, err)
	}
	all, err := l.Named(ctx, names)
	return Some{Jobs: all}, errors.Join(left, err)
}

// Page reads the first jobs by name behind after, at most limit, 0 for all, and what else is to be known of who goes first for them. more
// says that there are others behind them. Beside an UnreachableError stand those that can be read.
func Page(ctx context.Context, l *ledger.Ledger, after string, limit int) (shown []ledger.Stored, around Some, more bool, err error) {
	n, parts, left := l.Count(ctx)
	if left != nil && !unreachable(left) {
		return nil, around, false, left
	}
	if n <= Few || limit == 0 {
		around.Jobs, err = l.JobsIn(ctx, parts)
		around.Whole = true
		from, same := slices.BinarySearchFunc(around.Jobs, after, func(s ledger.Stored, name string) int { return strings.Compare(s.Job, name) })
		if same {
			from++
		}
		shown = around.Jobs[from:]
		if more = limit > 0 && len(shown) > limit; more {
			shown = shown[:limit]
		}
		return shown, around, more, errors.Join(left, err)
	}
	names, err := l.Names(ctx, parts)
	if err != nil {
		return nil, around, false, err
	}
	names = firstNames(names, after, limit+1)
	if more = len(names) > limit; more {
		names = names[:limit]
	}
	around.Jobs, err = l.Named(ctx, names)
	return around.Jobs, around, more, errors.Join(left, err)
}

func unreachable(err error) bool { return errors.As(err, new(*ledger.UnreachableError)) }

// firstNames are the first names behind after, in order, at most so many.
func firstNames(names []string, after string, most int) []string {
	first := make([]string, 0, most+1)
	for _, name := range names {
		if name <= after || len(first) == most && name >= first[most-1] {
			continue
		}
		at, _ := slices.BinarySearch(first, name)
		first = slices.Insert(first, at, name)
		first = first[:min(len(first), most)]
	}
	return first
}
