package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Promotion is an operator's promotion of a generation. It goes through these steps, each of which
// may be repeated:
//
//	Begin ──► Raise, the gate of each partition ──► Switch, each job ──► Promoted
//
// Begin writes the promotion and its epoch; repeated after an interruption it returns the same
// epoch. Another promotion gets a higher epoch. A partition that has a later epoch carries out
// nothing of an earlier promotion.
type Promotion struct {
	Generation string
	Pattern    string // of job names, as in path.Match; "" for all jobs
	Cancel     bool   // ends the runs in flight
	Epoch      int64  // filled in by Begin
	Resumed    bool   // Begin found that the same had begun
}

// PromotionOf reads Control.Promoting; false when no promotion is under way, or when this version
// cannot read it.
func PromotionOf(promoting string) (Promotion, bool) {
	var p Promotion
	if p.readPromotion(promoting) != nil {
		return Promotion{}, false
	}
	return p, true
}

// beginRounds is how often Begin is tried when other promotions begin at the same time.
const beginRounds = 5

// Begin begins or resumes a promotion, and returns it with its epoch. A late copy of the call
// begins nothing. Begin returns ErrClosed during a move, ErrRefused for a pattern while a promotion
// of all jobs has not ended, ErrClock, and ErrNoNamespace.
func (l *Ledger) Begin(ctx context.Context, p Promotion) (Promotion, error) {
	for range beginRounds {
		word, epoch, err := l.begin(ctx, p)
		if err != nil {
			return p, err
		}
		if word != "stale" {
			p.Resumed, p.Epoch = word == "resumed", epoch
			return p, nil
		}
	}
	return p, fmt.Errorf("%w: promotions begin again and again; see who does, and promote one generation", ErrRefused)
}

type beginArgs struct {
	clocked

	Generation string `json:"generation"`
	Pattern    string `json:"pattern"`
	Cancel     bool   `json:"cancel"`
	Least      int64  `json:"least"`       // the highest epoch of a partition's gate
	Seen       int64  `json:"seen,string"` // the epoch of the control record as the caller saw it
}

func (l *Ledger) begin(ctx context.Context, p Promotion) (word string, epoch int64, err error) {
	gates, err := l.gates(ctx)
	if err != nil {
		return "", 0, err
	}
	least := int64(0)
	for _, g := range gates {
		least = max(least, g.epoch)
	}
	c, err := l.Control(ctx)
	if err != nil {
		return "", 0, err
	}
	at, err := l.Now(ctx)
	if err != nil {
		return "", 0, err
	}
	now := at.UnixMilli()
	args := beginArgs{l.clocked(now), p.Generation, p.Pattern, p.Cancel, least, c.Epoch}
	reply, err := beginScript.call(ctx, l.client, namespaceTag(l.cfg.Namespace), "", args).Slice()
	if err != nil {
		return "", 0, l.explain(ctx, "begin the promotion of "+p.Generation, err)
	}
	if err := refused(reply, now); err != nil {
		return "", 0, err
	}
	if len(reply) != 2 {
		return "", 0, fmt.Errorf("%w: %q has lost its control record; start a node, which writes it again", ErrNoNamespace, l.cfg.Namespace)
	}
	if word = text(reply[0]); word == "half" {
		return "", 0, fmt.Errorf("%w: the promotion of all jobs to generation %q has not ended; promote %q again, or another one as a whole, and then some jobs",
			ErrRefused, text(reply[1]), text(reply[1]))
	}
	return word, number(reply[1]), nil
}

type promoteArgs struct {
	Epoch      int64  `json:"epoch"`
	Generation string `json:"generation"`
	All        bool   `json:"all"` // jobs are promoted
}

// Raise brings a begun promotion to all partitions. It returns ErrClosed, or ErrRefused when a
// later promotion has come to one of them.
func (l *Ledger) Raise(ctx context.Context, p Promotion) error {
	args := promoteArgs{p.Epoch, p.Generation, p.Pattern == ""}
	for _, k := range l.keys {
		word, err := promoteScript.call(ctx, l.client, k.tag, "", args).Text()
		if err != nil {
			return l.explain(ctx, "promote "+p.Generation, err)
		}
		if shut, ok := strings.CutPrefix(word, "closed|"); ok {
			return fmt.Errorf("promote %s: %w", p.Generation, ClosedBy(shut))
		}
		if word == "outdated" {
			return p.Outdated()
		}
	}
	return nil
}

// Outdated is ErrRefused for a promotion that a later one has outdated: the meaning of Switch's
// answer standby.
func (p Promotion) Outdated() error {
	return fmt.Errorf("%w: a later promotion than this one (epoch %d) has begun; `generations list` shows which", ErrRefused, p.Epoch)
}

// Follow is the ledger's Follow as part of the promotion. After a later promotion it returns
// ErrRefused and does nothing; so does Unfollow.
func (p Promotion) Follow(ctx context.Context, l *Ledger, upstream, job string) error {
	return l.follow(ctx, followArgs{upstream, job, true, ms(p.Epoch)})
}

// Unfollow undoes Follow.
func (p Promotion) Unfollow(ctx context.Context, l *Ledger, upstream, job string) error {
	return l.follow(ctx, followArgs{upstream, job, false, ms(p.Epoch)})
}

type promotedArgs struct {
	Promotion string `json:"promotion"` // as Begin wrote it
}

// Promoted ends a promotion, and reports whether it was still the one under way.
func (l *Ledger) Promoted(ctx context.Context, p Promotion) (bool, error) {
	n, err := promotedScript.call(ctx, l.client, namespaceTag(l.cfg.Namespace), "", promotedArgs{p.text()}).Int()
	return n == 1, l.explain(ctx, "end the promotion of "+p.Generation, err)
}

// Makers are the generations whose nodes create jobs, by partition. They differ only during a
// promotion.
func (l *Ledger) Makers(ctx context.Context) ([]string, error) {
	gates, err := l.gates(ctx)
	if err != nil {
		return nil, err
	}
	makers := make([]string, len(gates))
	for i, g := range gates {
		makers[i] = g.generation
	}
	return makers, nil
}

// gates reads the gates of all partitions. A closed gate is ErrClosed.
func (l *Ledger) gates(ctx context.Context) ([]gate, error) {
	gates, err := l.readGates(ctx)
	for _, g := range gates {
		if g.state != gateOpen && g.state != gateNone {
			return nil, ClosedBy(g.state + "|" + g.move + "|" + g.words)
		}
	}
	return gates, err
}

// Digests reads the digests of the stored definitions of jobs. Jobs that are missing or unreadable
// are left out.
func (l *Ledger) Digests(ctx context.Context, names []string) (map[string]string, error) {
	groups := l.byPartition(len(names), func(i int) string { return names[i] })
	read := make([]*redis.SliceCmd, len(groups))
	var some []int
	for part, places := range groups {
		if len(places) > 0 {
			some = append(some, part)
		}
	}
	err := l.eachReachable(ctx, nodeQueueTimeout, "read which definitions are stored", some, func(ctx context.Context, parts []int) error {
		_, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, part := range parts {
				fields := make([]string, len(groups[part]))
				for i, at := range groups[part] {
					fields[i] = names[at]
				}
				read[part] = p.HMGet(ctx, l.keys[part].jobs, fields...)
			}
			return nil
		})
		return err
	})
	if err != nil && !errors.As(err, new(*UnreachableError)) {
		return nil, err
	}
	digests := make(map[string]string, len(names))
	for _, part := range some {
		if read[part].Err() != nil {
			continue
		}
		for i, at := range groups[part] {
			if e, err := parseEntry(names[at], text(read[part].Val()[i])); err == nil {
				digests[names[at]] = e.Digest
			}
		}
	}
	return digests, err
}
