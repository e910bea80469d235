package define

import (
	"context"
	"fmt"
	"strings"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

var (
	beginScript    = ledger.Ship("define/begin", beginArgs{})
	promoteScript  = ledger.Ship("define/promote", promoteArgs{})
	promotedScript = ledger.Ship("define/promoted", promotedArgs{})
)

// beginRounds is how often Begin is tried when other promotions begin at the same time.
const beginRounds = 5

// Begin begins or resumes a promotion, and returns it with its epoch. A late copy of the call
// begins nothing. Begin returns ErrClosed during a move, ErrRefused for a pattern while a promotion
// of all jobs has not ended, ErrClock, and ErrNoNamespace.
func Begin(ctx context.Context, l *ledger.Ledger, p ledger.Promotion) (ledger.Promotion, error) {
	for range beginRounds {
		word, epoch, err := begin(ctx, l, p)
		if err != nil {
			return p, err
		}
		if word != "stale" {
			p.Resumed, p.Epoch = word == "resumed", epoch
			return p, nil
		}
	}
	return p, fmt.Errorf("%w: promotions begin again and again; see who does, and promote one generation", ledger.ErrRefused)
}

type beginArgs struct {
	ledger.Clocked

	Generation string `json:"generation"`
	Pattern    string `json:"pattern"`
	Cancel     bool   `json:"cancel"`
	Least      int64  `json:"least"`       // the highest epoch of a partition's gate
	Seen       int64  `json:"seen,string"` // the epoch of the control record as the caller saw it
}

func begin(ctx context.Context, l *ledger.Ledger, p ledger.Promotion) (word string, epoch int64, err error) {
	gates, err := openGates(ctx, l)
	if err != nil {
		return "", 0, err
	}
	least := int64(0)
	for _, g := range gates {
		least = max(least, g.Epoch)
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
	args := beginArgs{l.Clocked(now), p.Generation, p.Pattern, p.Cancel, least, c.Epoch}
	reply, err := beginScript.Call(ctx, l.Client, ledger.NamespaceTag(l.Config.Namespace), "", args).Slice()
	if err != nil {
		return "", 0, l.Explain(ctx, "begin the promotion of "+p.Generation, err)
	}
	if err := ledger.Refused(reply, now); err != nil {
		return "", 0, err
	}
	if len(reply) != 2 {
		return "", 0, fmt.Errorf("%w: %q has lost its control record; start a node, which writes it again", ledger.ErrNoNamespace, l.Config.Namespace)
	}
	if word = ledger.Text(reply[0]); word == "half" {
		return "", 0, fmt.Errorf("%w: the promotion of all jobs to generation %q has not ended; promote %q again, or another one as a whole, and then some jobs",
			ledger.ErrRefused, ledger.Text(reply[1]), ledger.Text(reply[1]))
	}
	return word, ledger.Number(reply[1]), nil
}

type promoteArgs struct {
	Epoch      int64  `json:"epoch"`
	Generation string `json:"generation"`
	All        bool   `json:"all"` // jobs are promoted
}

// Raise brings a begun promotion to all partitions. It returns ErrClosed, or ErrRefused when a
// later promotion has come to one of them.
func Raise(ctx context.Context, l *ledger.Ledger, p ledger.Promotion) error {
	args := promoteArgs{p.Epoch, p.Generation, p.Pattern == ""}
	for _, k := range l.Keys {
		word, err := promoteScript.Call(ctx, l.Client, k.Tag, "", args).Text()
		if err != nil {
			return l.Explain(ctx, "promote "+p.Generation, err)
		}
		if shut, ok := strings.CutPrefix(word, "closed|"); ok {
			return fmt.Errorf("promote %s: %w", p.Generation, ledger.ClosedBy(shut))
		}
		if word == "outdated" {
			return Outdated(p)
		}
	}
	return nil
}

// Outdated is ErrRefused for a promotion that a later one has outdated: the meaning of Switch's
// answer standby.
func Outdated(p ledger.Promotion) error {
	return fmt.Errorf("%w: a later promotion than this one (epoch %d) has begun; `generations list` shows which", ledger.ErrRefused, p.Epoch)
}

type promotedArgs struct {
	Promotion string `json:"promotion"` // as Begin wrote it
}

// Promoted ends a promotion, and reports whether it was still the one under way.
func Promoted(ctx context.Context, l *ledger.Ledger, p ledger.Promotion) (bool, error) {
	n, err := promotedScript.Call(ctx, l.Client, ledger.NamespaceTag(l.Config.Namespace), "", promotedArgs{p.Text()}).Int()
	return n == 1, l.Explain(ctx, "end the promotion of "+p.Generation, err)
}

// Makers are the generations whose nodes create jobs, by partition. They differ only during a
// promotion.
func Makers(ctx context.Context, l *ledger.Ledger) ([]string, error) {
	gates, err := openGates(ctx, l)
	if err != nil {
		return nil, err
	}
	makers := make([]string, len(gates))
	for i, g := range gates {
		makers[i] = g.Generation
	}
	return makers, nil
}

// openGates reads the gates of all partitions. A closed gate is ErrClosed.
func openGates(ctx context.Context, l *ledger.Ledger) ([]ledger.Gate, error) {
	gates, err := l.Gates(ctx)
	for _, g := range gates {
		if g.State != ledger.GateOpen && g.State != ledger.GateNone {
			return nil, ledger.ClosedBy(g.State + "|" + g.Move + "|" + g.Words)
		}
	}
	return gates, err
}
