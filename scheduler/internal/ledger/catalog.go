package ledger

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
)

// The catalog holds the jobs that are stored at run time. Nodes read its changes, by versions, and
// register the jobs whose handlers they have, as jobs of their own.

const (
	// CatalogPage is how many changes of the catalog are read or sent at once.
	CatalogPage = 500
	// Deletions are kept for deletedFor, the latest deletedMost of them, so that nodes read them.
	deletedFor  = 24 * time.Hour
	deletedMost = 100_000
)

// CatalogJob is a job of the catalog, or its deletion.
type CatalogJob struct {
	Job        string
	Version    int64  // of its latest change: Redis' time, ms, or a little more
	Definition string // JSON; "" when it was deleted
}

// CatalogChange is a job to store or to delete.
type CatalogChange struct {
	Job        string `json:"job"`
	Definition string `json:"text"`              // "" deletes the job
	Was        string `json:"was"`               // version that is to be replaced, "0" for none; "" for any
	Version    string `json:"version,omitempty"` // of a job that is known to have been stored, if Redis has lost it
}

type catalogArgs struct {
	clocked

	Items []CatalogChange `json:"items"`
	Keep  int64           `json:"keep"` // how long deletions are remembered, ms
	Most  int             `json:"most"` // and how many
}

// CatalogAnswer is the result of a CatalogChange.
type CatalogAnswer struct {
	Done    bool
	Same    bool  // and nothing has changed: the job was stored so before
	Version int64 // of the job now; 0 when there is none
}

// ChangeCatalog makes changes, at most CatalogPage. A job that is already stored as the change
// wants it keeps its version. An answer that is not Done has the stored version: another one than
// expected or, for a job with a known version, a later one.
func (l *Ledger) ChangeCatalog(ctx context.Context, changes []CatalogChange) ([]CatalogAnswer, error) {
	const doing = "change the catalog"
	args := catalogArgs{l.timed(ctx), changes, deletedFor.Milliseconds(), deletedMost}
	reply, err := catalogScript.call(ctx, l.client, namespaceTag(l.cfg.Namespace), "", args).StringSlice()
	if err != nil {
		return nil, l.explain(ctx, doing, err)
	}
	if len(reply) != 2*len(changes) {
		return nil, fmt.Errorf("%s: %d answers to %d changes", doing, len(reply)/2, len(changes))
	}
	var answers []CatalogAnswer
	for pair := range slices.Chunk(reply, 2) {
		answers = append(answers, CatalogAnswer{pair[0] == "done" || pair[0] == "same", pair[0] == "same", number(pair[1])})
	}
	return answers, nil
}

// Catalog is a part of the catalog.
type Catalog struct {
	Jobs []CatalogJob // by version
	End  int64        // all changes up to this version are read
	Last int64        // version of the latest change of the whole; 0 for none
	Size int          // how many jobs the whole has
}

// CatalogSince reads the changes after a version, at most CatalogPage jobs and as many deletions.
func (l *Ledger) CatalogSince(ctx context.Context, version int64) (c Catalog, err error) {
	const doing = "read the catalog"
	ns := l.cfg.Namespace
	var at, dropped, lastAt, lastDropped *redis.ZSliceCmd
	var size *redis.IntCmd
	after := pageAfter(version)
	err = redisconn.TxPipelined(ctx, l.client, func(p redis.Pipeliner) error {
		at = p.ZRangeByScoreWithScores(ctx, catalogAtKey(ns), after)
		dropped = p.ZRangeByScoreWithScores(ctx, catalogDroppedKey(ns), after)
		lastAt, lastDropped = p.ZRevRangeWithScores(ctx, catalogAtKey(ns), 0, 0), p.ZRevRangeWithScores(ctx, catalogDroppedKey(ns), 0, 0)
		size = p.ZCard(ctx, catalogAtKey(ns))
		return nil
	})
	if err != nil {
		return c, l.explain(ctx, doing, err)
	}
	c.Size, c.Last = int(size.Val()), max(newest(lastAt.Val()), newest(lastDropped.Val()))
	// A page ends where the shorter of two full lists ends: nothing before its end is left out.
	c.End = c.Last
	for _, list := range [][]redis.Z{at.Val(), dropped.Val()} {
		if len(list) == CatalogPage {
			c.End = min(c.End, newest(list[len(list)-1:]))
		}
	}
	for _, z := range at.Val() {
		if v := int64(z.Score); v <= c.End {
			c.Jobs = append(c.Jobs, CatalogJob{Job: member(z), Version: v})
		}
	}
	if err := l.catalogTexts(ctx, c.Jobs); err != nil {
		return c, err
	}
	for _, z := range dropped.Val() {
		if v := int64(z.Score); v <= c.End {
			c.Jobs = append(c.Jobs, CatalogJob{Job: member(z), Version: v})
		}
	}
	slices.SortFunc(c.Jobs, func(a, b CatalogJob) int { return int(a.Version - b.Version) })
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
	return &redis.ZRangeBy{Min: "(" + strconv.FormatInt(version, 10), Max: "+inf", Count: CatalogPage}
}

// catalogTexts fills in the definitions. Of a job that was changed meanwhile the later one stands
// there, with its version.
func (l *Ledger) catalogTexts(ctx context.Context, list []CatalogJob) error {
	if len(list) == 0 {
		return nil
	}
	names := make([]string, len(list))
	for i, j := range list {
		names[i] = j.Job
	}
	found, err := l.catalogJobs(ctx, names)
	for i, j := range found {
		if j.Definition != "" {
			list[i] = j
		}
	}
	return err
}

// CatalogJobs reads jobs by their names. A missing one has no version.
func (l *Ledger) CatalogJobs(ctx context.Context, names ...string) ([]CatalogJob, error) {
	var all []CatalogJob
	for some := range slices.Chunk(names, CatalogPage) {
		found, err := l.catalogJobs(ctx, some)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func (l *Ledger) catalogJobs(ctx context.Context, names []string) ([]CatalogJob, error) {
	const doing = "read the catalog"
	records, err := l.client.HMGet(ctx, catalogKey(l.cfg.Namespace), names...).Result()
	if err != nil {
		return nil, l.explain(ctx, doing, err)
	}
	all := make([]CatalogJob, len(names))
	for i, record := range records {
		if all[i].Job = names[i]; record != nil {
			all[i] = parseCatalogJob(names[i], text(record))
		}
	}
	return all, nil
}

// parseCatalogJob reads a record. A job whose record this version cannot read has the record's
// version, if any, and a Definition that cannot be read either.
func parseCatalogJob(job, record string) CatalogJob {
	format, rest, _ := strings.Cut(record, "|")
	version, definition, _ := strings.Cut(rest, "|")
	if format != "1" {
		definition = record
	}
	return CatalogJob{job, number(version), definition}
}

// CatalogNames are the names of all jobs of the catalog with their versions, read in pages. Jobs
// that change meanwhile may be missing.
func (l *Ledger) CatalogNames(ctx context.Context) (map[string]int64, error) {
	const doing = "read the catalog"
	names := make(map[string]int64)
	for after := int64(0); ; {
		page, err := l.client.ZRangeByScoreWithScores(ctx, catalogAtKey(l.cfg.Namespace), pageAfter(after)).Result()
		if err != nil {
			return nil, l.explain(ctx, doing, err)
		}
		for _, z := range page {
			names[member(z)], after = int64(z.Score), int64(z.Score)
		}
		if len(page) < CatalogPage {
			return names, nil
		}
	}
}

// CatalogDeleted are the versions of those jobs, of at most CatalogPage, that were deleted from the
// catalog and not stored again.
func (l *Ledger) CatalogDeleted(ctx context.Context, names []string) (map[string]int64, error) {
	const doing = "read the catalog"
	versions, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, name := range names {
			p.ZScore(ctx, catalogDroppedKey(l.cfg.Namespace), name)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, l.explain(ctx, doing, err)
	}
	gone := make(map[string]int64)
	for i, v := range versions {
		switch v, err := v.(*redis.FloatCmd).Result(); {
		case err == nil:
			gone[names[i]] = int64(v)
		case !errors.Is(err, redis.Nil):
			return nil, l.explain(ctx, doing, err)
		}
	}
	return gone, nil
}

// CopyCatalog makes another namespace's catalog equal to this one's, with its versions.
func (l *Ledger) CopyCatalog(ctx context.Context, to *Ledger) error {
	names, err := l.CatalogNames(ctx)
	if err != nil {
		return err
	}
	there, err := to.CatalogNames(ctx)
	if err != nil {
		return err
	}
	all, err := l.CatalogJobs(ctx, slices.Sorted(maps.Keys(names))...)
	if err != nil {
		return err
	}
	var changes []CatalogChange
	for name := range there {
		if _, here := names[name]; !here {
			changes = append(changes, CatalogChange{Job: name})
		}
	}
	for _, j := range all {
		if j.Definition != "" && there[j.Job] != j.Version {
			changes = append(changes, CatalogChange{Job: j.Job, Definition: j.Definition, Version: strconv.FormatInt(j.Version, 10)})
		}
	}
	for some := range slices.Chunk(changes, CatalogPage) {
		if _, err := to.ChangeCatalog(ctx, some); err != nil {
			return err
		}
	}
	return nil
}
