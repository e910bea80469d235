package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
)

const (
	// besideFor is how long a definition beside the active ones is kept when nobody says that it still holds.
	besideFor = 30 * 24 * time.Hour
	// BesideMax is how many generations are kept beside, in a partition, and there is room for one that a promotion replaces.
	// One more takes the place of the one that was not seen for longest, if that is besideYields at least.
	BesideMax    = 8
	besideYields = 2 * time.Hour
)

// Aside is one job's definition in a generation that does not run it.
type Aside struct {
	Generation, Job, Digest, Revision string
	Text                              []byte // JSON
	Seen                              int64  // when it was written last, ms
	// Was is, to be written, the digest of the one that it replaces; "" to write only where there is none, or the same.
	Was string
}

// Shelved is the answer to one Aside: whether it is kept now, and what is.
type Shelved struct {
	Word             string // kept, differs, foreign
	Digest, Revision string
	// Former are digests that were replaced, newest first: the last eight.
	Former []string
}

// Shelve keeps definitions of one generation beside the active ones; all of jobs in one partition, at most BatchMax. With
// first, which is for the first batch of a partition, it drops before what nobody has written for 30 days. It returns one
// answer each, ErrClosed, or ErrRefused when too many generations are there.
func (l *Ledger) Shelve(ctx context.Context, generation string, first bool, batch []Aside) ([]Shelved, error) {
	return l.shelve(ctx, generation, first, BesideMax, batch)
}

// Shelve is the ledger's for what the promotion replaces, which has room also where BesideMax generations stand by: refused half
// way, the promotion could not be ended.
func (p Promotion) Shelve(ctx context.Context, l *Ledger, generation string, first bool, batch []Aside) ([]Shelved, error) {
	return l.shelve(ctx, generation, first, BesideMax+1, batch)
}

func (l *Ledger) shelve(ctx context.Context, generation string, first bool, most int64, batch []Aside) ([]Shelved, error) {
	k := l.keys[l.Partition(batch[0].Job)]
	args := []any{generation, ms(besideFor.Milliseconds()), ms(most), ms(besideYields.Milliseconds()), flagged(first)}
	for _, d := range batch {
		args = append(args, d.Job, d.Digest, plain(d.Revision), d.Was, d.Text)
	}
	reply, err := besideScript.Run(ctx, l.client, []string{k.beside, k.former, k.gate}, args...).Slice()
	if err != nil {
		return nil, redisconn.Explain("keep definitions beside", err)
	}
	if err := refused(reply, 0); err != nil {
		return nil, err
	}
	if len(reply) == 2 {
		return nil, fmt.Errorf("%w: generation %q: the definitions of %s other generations are kept beside the active one's, and all were seen within %s; stop the nodes of one that is not needed",
			ErrRefused, generation, text(reply[1]), besideYields)
	}
	if len(reply) != 4*len(batch) {
		return nil, fmt.Errorf("keep definitions beside: %d answers for %d definitions", len(reply)/4, len(batch))
	}
	out := make([]Shelved, len(batch))
	for i := range out {
		r := reply[i*4:]
		out[i] = Shelved{Word: text(r[0]), Digest: text(r[1]), Revision: text(r[2]), Former: listed(text(r[3]))}
	}
	return out, nil
}

// Beside reads the definitions of all generations that are kept beside the active ones, by generation and job, and counts
// the records that this version does not understand.
func (l *Ledger) Beside(ctx context.Context) (all []Aside, foreign int, err error) {
	read := make([]*redis.MapStringStringCmd, len(l.keys))
	_, err = l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, k := range l.keys {
			read[i] = p.HGetAll(ctx, k.beside)
		}
		return nil
	})
	if err != nil {
		return nil, 0, l.explain(ctx, "read the definitions beside", err)
	}
	for _, cmd := range read {
		for field, record := range cmd.Val() {
			generation, job, named := strings.Cut(field, "|")
			f, err := split(record, "1", 4)
			if err != nil || !named {
				foreign++
				continue
			}
			d := Aside{Generation: generation, Job: job, Seen: f.int(), Revision: f.text(), Digest: f.text(), Text: []byte(f.text())}
			if f.bad != nil {
				foreign++
				continue
			}
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b Aside) int {
		return cmp.Or(strings.Compare(a.Generation, b.Generation), strings.Compare(a.Job, b.Job))
	})
	return all, foreign, nil
}
