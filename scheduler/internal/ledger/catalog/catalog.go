// Package catalog holds the jobs that are stored at run time. Nodes read its changes, by versions,
// and register the jobs whose handlers they have, as jobs of their own. The declared handlers are
// here too.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

var catalogScript = ledger.Ship("catalog/catalog", catalogArgs{})

const (
	// Page is how many changes of the catalog are read or sent at once.
	Page = 500
	// Deletions are kept for deletedFor, the latest deletedMost of them, so that nodes read them.
	deletedFor  = 24 * time.Hour
	deletedMost = 100_000
)

// Job is a job of the catalog, or its deletion.
type Job struct {
	Job        string
	Version    int64  // of its latest change: Redis' time, ms, or a little more
	Definition string // JSON; "" when it was deleted
}

// Change is a job to store or to delete.
type Change struct {
	Job        string `json:"job"`
	Definition string `json:"text"`              // "" deletes the job
	Was        string `json:"was"`               // version that is to be replaced, "0" for none; "" for any
	Version    string `json:"version,omitempty"` // of a job that is known to have been stored, if Redis has lost it
}

type catalogArgs struct {
	ledger.Clocked

	Items []Change `json:"items"`
	Keep  int64    `json:"keep"` // how long deletions are remembered, ms
	Most  int      `json:"most"` // and how many
}

// Answer is the result of a Change.
type Answer struct {
	Done    bool
	Same    bool  // and nothing has changed: the job was stored so before
	Version int64 // of the job now; 0 when there is none
}

// Apply makes changes, at most Page. A job that is already stored as the change
// wants it keeps its version. An answer that is not Done has the stored version: another one than
// expected or, for a job with a known version, a later one.
func Apply(ctx context.Context, l *ledger.Ledger, changes []Change) ([]Answer, error) {
	const doing = "change the catalog"
	args := catalogArgs{l.Timed(ctx), changes, deletedFor.Milliseconds(), deletedMost}
	reply, err := catalogScript.Call(ctx, l.Client, ledger.NamespaceTag(l.Config.Namespace), "", args).StringSlice()
	if err != nil {
		return nil, l.Explain(ctx, doing, err)
	}
	if len(reply) != 2*len(changes) {
		return nil, fmt.Errorf("%s: %d answers to %d changes", doing, len(reply)/2, len(changes))
	}
	var answers []Answer
	for pair := range slices.Chunk(reply, 2) {
		answers = append(answers, Answer{pair[0] == "done" || pair[0] == "same", pair[0] == "same", ledger.Number(pair[1])})
	}
	return answers, nil
}

// Part is a part of the catalog.
type Part struct {
	Jobs []Job // by version
	End  int64 // all changes up to this version are read
	Last int64 // version of the latest change of the whole; 0 for none
	Size int   // how many jobs the whole has
}

// Since reads the changes after a version, at most Page jobs and as many deletions.
func Since(ctx context.Context, l *ledger.Ledger, version int64) (c Part, err error) {
	const doing = "read the catalog"
	ns := l.Config.Namespace
	var at, dropped, lastAt, lastDropped *redis.ZSliceCmd
	var size *redis.IntCmd
	after := pageAfter(version)
	err = redisconn.TxPipelined(ctx, l.Client, func(p redis.Pipeliner) error {
		at = p.ZRangeByScoreWithScores(ctx, ledger.NamespaceKeys(ns).CatalogAt, after)
		dropped = p.ZRangeByScoreWithScores(ctx, ledger.NamespaceKeys(ns).CatalogDropped, after)
		lastAt, lastDropped = p.ZRevRangeWithScores(ctx, ledger.NamespaceKeys(ns).CatalogAt, 0, 0), p.ZRevRangeWithScores(ctx, ledger.NamespaceKeys(ns).CatalogDropped, 0, 0)
		size = p.ZCard(ctx, ledger.NamespaceKeys(ns).CatalogAt)
		return nil
	})
	if err != nil {
		return c, l.Explain(ctx, doing, err)
	}
	c.Size, c.Last = int(size.Val()), max(newest(lastAt.Val()), newest(lastDropped.Val()))
	// A page ends where the shorter of two full lists ends: nothing before its end is left out.
	c.End = c.Last
	for _, list := range [][]redis.Z{at.Val(), dropped.Val()} {
		if len(list) == Page {
			c.End = min(c.End, newest(list[len(list)-1:]))
		}
	}
	for _, z := range at.Val() {
		if v := int64(z.Score); v <= c.End {
			c.Jobs = append(c.Jobs, Job{Job: ledger.Member(z), Version: v})
		}
	}
	if err := fillTexts(ctx, l, c.Jobs); err != nil {
		return c, err
	}
	for _, z := range dropped.Val() {
		if v := int64(z.Score); v <= c.End {
			c.Jobs = append(c.Jobs, Job{Job: ledger.Member(z), Version: v})
		}
	}
	slices.SortFunc(c.Jobs, func(a, b Job) int { return int(a.Version - b.Version) })
	return c, nil
}

func newest(list []redis.Z) int64 {
	if len(list) == 0 {
		return 0
	}
	return int64(list[0].Score)
}

// pageAfter is a page of the jobs with later versions.
func pageAfter(version int64) *redis.ZRangeBy {
	return &redis.ZRangeBy{Min: "(" + strconv.FormatInt(version, 10), Max: "+inf", Count: Page}
}

// fillTexts fills in the definitions. Of a job that was changed meanwhile the later one stands
// there, with its version.
func fillTexts(ctx context.Context, l *ledger.Ledger, list []Job) error {
	if len(list) == 0 {
		return nil
	}
	names := make([]string, len(list))
	for i, j := range list {
		names[i] = j.Job
	}
	found, err := jobs(ctx, l, names)
	for i, j := range found {
		if j.Definition != "" {
			list[i] = j
		}
	}
	return err
}

// Jobs reads jobs by their names. A missing one has no version.
func Jobs(ctx context.Context, l *ledger.Ledger, names ...string) ([]Job, error) {
	var all []Job
	for some := range slices.Chunk(names, Page) {
		found, err := jobs(ctx, l, some)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func jobs(ctx context.Context, l *ledger.Ledger, names []string) ([]Job, error) {
	const doing = "read the catalog"
	records, err := l.Client.HMGet(ctx, ledger.NamespaceKeys(l.Config.Namespace).Catalog, names...).Result()
	if err != nil {
		return nil, l.Explain(ctx, doing, err)
	}
	all := make([]Job, len(names))
	for i, record := range records {
		if all[i].Job = names[i]; record != nil {
			all[i] = parseJob(names[i], ledger.Text(record))
		}
	}
	return all, nil
}

// parseJob reads a record. A job whose record this version cannot read has the record's
// version, if any, and a Definition that cannot be read either.
func parseJob(job, record string) Job {
	format, rest, _ := strings.Cut(record, "|")
	version, definition, _ := strings.Cut(rest, "|")
	if format != "1" {
		definition = record
	}
	return Job{job, ledger.Number(version), definition}
}

// Names are the names of all jobs of the catalog with their versions, read in pages. Jobs
// that change meanwhile may be missing.
func Names(ctx context.Context, l *ledger.Ledger) (map[string]int64, error) {
	const doing = "read the catalog"
	names := make(map[string]int64)
	for after := int64(0); ; {
		page, err := l.Client.ZRangeByScoreWithScores(ctx, ledger.NamespaceKeys(l.Config.Namespace).CatalogAt, pageAfter(after)).Result()
		if err != nil {
			return nil, l.Explain(ctx, doing, err)
		}
		for _, z := range page {
			names[ledger.Member(z)], after = int64(z.Score), int64(z.Score)
		}
		if len(page) < Page {
			return names, nil
		}
	}
}

// Deleted are the versions of those jobs, of at most Page, that were deleted from the
// catalog and not stored again.
func Deleted(ctx context.Context, l *ledger.Ledger, names []string) (map[string]int64, error) {
	const doing = "read the catalog"
	versions, err := l.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, name := range names {
			p.ZScore(ctx, ledger.NamespaceKeys(l.Config.Namespace).CatalogDropped, name)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, l.Explain(ctx, doing, err)
	}
	gone := make(map[string]int64)
	for i, v := range versions {
		switch v, err := v.(*redis.FloatCmd).Result(); {
		case err == nil:
			gone[names[i]] = int64(v)
		case !errors.Is(err, redis.Nil):
			return nil, l.Explain(ctx, doing, err)
		}
	}
	return gone, nil
}

// Copy makes another namespace's catalog equal to this one's, with its versions.
func Copy(ctx context.Context, l *ledger.Ledger, to *ledger.Ledger) error {
	names, err := Names(ctx, l)
	if err != nil {
		return err
	}
	there, err := Names(ctx, to)
	if err != nil {
		return err
	}
	all, err := Jobs(ctx, l, slices.Sorted(maps.Keys(names))...)
	if err != nil {
		return err
	}
	var changes []Change
	for name := range there {
		if _, here := names[name]; !here {
			changes = append(changes, Change{Job: name})
		}
	}
	for _, j := range all {
		if j.Definition != "" && there[j.Job] != j.Version {
			changes = append(changes, Change{Job: j.Job, Definition: j.Definition, Version: strconv.FormatInt(j.Version, 10)})
		}
	}
	for some := range slices.Chunk(changes, Page) {
		if _, err := Apply(ctx, to, some); err != nil {
			return err
		}
	}
	return nil
}
