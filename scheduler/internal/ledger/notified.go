package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
)

// ErrStale is returned to a notifier that another one has followed: it holds the lock no longer.
var ErrStale = errors.New("another notifier has taken over")

// notedToken is the field with the last writer's token. No job is called so.
const notedToken = ":token"

type notifiedArgs struct {
	Token string   `json:"token"`
	Set   []string `json:"set,omitempty"`  // field, value, field, value
	Drop  []string `json:"drop,omitempty"` // fields
}

// Notified reads the notifiers' notes, by field: a job's name, or a word that begins with a colon.
func (l *Ledger) Notified(ctx context.Context) (map[string]string, error) {
	all, err := l.client.HGetAll(ctx, notifiedKey(l.cfg.Namespace)).Result()
	delete(all, notedToken)
	return all, l.explain(ctx, "read what was notified", err)
}

// SetNotified writes some fields and drops others, in one step. It returns ErrStale, and writes
// nothing, when the holder of a greater token has written before.
func (l *Ledger) SetNotified(ctx context.Context, token locking.Token, set map[string]string, drop []string) error {
	args := notifiedArgs{Token: strconv.FormatInt(token, 10), Drop: drop}
	for _, field := range slices.Sorted(maps.Keys(set)) {
		args.Set = append(args.Set, field, set[field])
	}
	answer, err := notifiedScript.call(ctx, l.client, namespaceTag(l.cfg.Namespace), "", args).Text()
	if err != nil {
		return l.explain(ctx, "note what is notified", err)
	}
	if answer != "done" {
		return fmt.Errorf("note what is notified: %w", ErrStale)
	}
	return nil
}

// changedLines is how many lines of a partition are read at first to find changed jobs.
const changedLines = 32

// Changed names the jobs of which rows were written since an instant of Redis' clock, ms. whole is
// false when there were so many that some are not known any more: any job may then have changed.
func (l *Ledger) Changed(ctx context.Context, since int64) (jobs map[string]bool, whole bool, err error) {
	jobs = make(map[string]bool)
	parts := l.All()
	for lines := int64(changedLines); len(parts) > 0; lines *= 8 {
		found := make([]*redis.StringSliceCmd, len(parts))
		_, err = l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, part := range parts {
				found[i] = p.LRange(ctx, l.keys[part].recent, -lines, -1)
			}
			return nil
		})
		if err != nil {
			return nil, false, l.explain(ctx, "look for changes", err)
		}
		var deeper []int
		for i, list := range found {
			switch n := int64(len(list.Val())); {
			case changedIn(list.Val(), since, jobs):
			case n == lines:
				deeper = append(deeper, parts[i])
			case n >= recentMost:
				return jobs, false, nil
			}
		}
		parts = deeper
	}
	return jobs, true, nil
}

// changedIn adds the jobs of the lines that were written since an instant, and reports whether
// there is a line before it. Lines without a time stand for rows that a move or a backup has
// brought, which are no news.
func changedIn(lines []string, since int64, jobs map[string]bool) bool {
	for _, line := range slices.Backward(lines) {
		at, names, _ := strings.Cut(line, "|")
		switch ms := number(at); {
		case ms == 0:
			continue
		case ms < since:
			return true
		}
		for job := range strings.SplitSeq(names, ",") {
			jobs[job] = true
		}
	}
	return false
}
