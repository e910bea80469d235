package schedtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/ops"
)

// event is a row of a history, or a run in flight, on its way to a line.
type event struct {
	tick, last, count int64
	ranged            bool
	attempt           int
	part              int // 0 for a tick, 1 and more for a shard of it, which comes behind
	at                int64
	word              string   // the outcome
	why               string   // in brackets
	more              []string // the rest of the line
}

// noTick is 1 for a row that stands for no tick, such as a rewind: those come last.
func (e event) noTick() int {
	if e.ranged && e.count == 0 {
		return 1
	}
	return 0
}

// read makes the history of the ledger's rows at the end, and checks the rules that hold in every
// scenario.
func (p *played) read(c *cluster) {
	err := c.beside(func(l *ledger.Ledger, i *ops.Client) error {
		ctx, names := context.Background(), p.scenario.names()
		rows, foreign, err := query.History(ctx, l, names)
		if err != nil {
			return err
		}
		open, err := query.InFlight(ctx, l, names...)
		if err != nil {
			return err
		}
		if foreign > 0 {
			p.broken = append(p.broken, fmt.Sprintf("%d rows cannot be read", foreign))
		}
		p.got = slices.Clone(p.said)
		for _, name := range names {
			view, err := i.GetJob(ctx, name)
			if errors.Is(err, ops.ErrUnknownJob) {
				p.got = append(p.got, name+" is gone")
				continue
			}
			if err != nil {
				return err
			}
			p.got = append(p.got, p.history(c, name, rows[name], open)...)
			p.got = append(p.got, p.state(c, view)...)
		}
		return nil
	})
	if err != nil {
		p.broken = append(p.broken, err.Error())
	}
}

// history are the lines of a job's rows and runs in flight.
func (p *played) history(c *cluster, name string, rows []ledger.Row, open []ledger.Run) []string {
	var all []event
	for _, r := range rows {
		if p.scenario.shards || r.TickID == "" {
			all = append(all, p.row(r))
		}
	}
	for _, l := range open {
		if l.Job == name && (p.scenario.shards || l.TickID == "") {
			all = append(all, p.flight(l))
		}
	}
	slices.SortStableFunc(all, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.tick, b.tick), cmp.Compare(min(a.part, 1), min(b.part, 1)), cmp.Compare(a.part, b.part), cmp.Compare(a.at, b.at),
			cmp.Compare(a.attempt, b.attempt))
	})
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.noTick(), b.noTick()) })
	var lines []string
	for i := 0; i < len(all); i++ {
		e := all[i]
		for ; i+1 < len(all) && e.count > 0 && all[i+1].count > 0 && all[i+1].word == e.word && all[i+1].why == e.why; i++ {
			e.last, e.count = max(e.last, all[i+1].last), e.count+all[i+1].count
		}
		lines = append(lines, name+" "+p.line(c, e))
	}
	return lines
}

func (p *played) line(c *cluster, e event) string {
	words := []string{p.tick(c, e.tick)}
	if e.ranged && e.count > 1 {
		words[0] += ".." + p.tick(c, e.last)
	}
	if e.ranged && e.count != 1 {
		words = append(words, strconv.FormatInt(e.count, 10))
	}
	words = append(words, e.word)
	if e.why != "" {
		words = append(words, "("+e.why+")")
	}
	return strings.Join(append(words, e.more...), " ")
}

// tick renders an instant: as an offset from the start, or in the scenario's time zone.
func (p *played) tick(c *cluster, ms int64) string {
	at := time.UnixMilli(ms)
	if ms == 0 {
		return "-"
	}
	if p.scenario.zone != nil {
		return at.In(p.scenario.zone).Format("2006-01-02T15:04:05-07:00")
	}
	return "+" + spec.FormatDuration(at.Sub(c.began))
}

// whole is a span in whole seconds, as on a watch: the short time of a message makes no difference.
func whole(ms int64) time.Duration {
	const slack = 150 // the node's idea of Redis' clock
	return (time.Duration(ms+slack) * time.Millisecond).Truncate(time.Second)
}

func (p *played) row(r ledger.Row) event {
	e := event{tick: r.Tick, attempt: r.Attempt, at: r.At, word: r.Outcome.String(), why: r.Reason}
	if r.Note != "" {
		e.why += ": " + r.Note
	}
	if r.Ranged {
		e.ranged, e.last, e.count = true, r.Until, r.Count
		return e
	}
	e.more = p.details(r.Attempt, r.Trigger)
	e.shard(r.IsTick, r.Shard, r.Shards)
	if r.Tries > 1 {
		e.more = append(e.more, fmt.Sprint(r.Tries, " tries"))
	}
	if r.Token != 0 || r.IsTick { // it was granted
		p.lateBy(&e, r.Started-r.Tick)
		if ran := whole(r.At - r.Started); ran > 0 && r.Outcome != jobs.OutcomeAbandoned && !slices.Contains(p.scenario.hidden, "ran") {
			e.more = append(e.more, "ran "+spec.FormatDuration(ran))
		}
	}
	if p.scenario.nodes && r.NodeName != "" {
		e.more = append(e.more, "on "+r.NodeName)
	}
	if r.Outcome == jobs.OutcomeFailed && !r.IsTick {
		e.more = append(e.more, `"`+firstWordsOf(r.Error)+`"`)
	}
	return e
}

// shard names the shard, if it is one.
func (e *event) shard(whole bool, shard, shards int) {
	if !whole && shards > 1 {
		e.part, e.word = 1+shard, fmt.Sprintf("shard %d %s", shard, e.word)
	}
}

// details are the words about a run that differs from the normal case.
func (p *played) details(attempt int, trigger string) []string {
	var words []string
	if attempt > 1 {
		words = append(words, fmt.Sprint("attempt ", attempt))
	}
	if trigger != "" && trigger != jobs.TriggerSchedule.String() {
		words = append(words, "by "+trigger)
	}
	return words
}

func (p *played) lateBy(e *event, ms int64) {
	if late := whole(ms); late > 0 && !slices.Contains(p.scenario.hidden, "late") {
		e.more = append(e.more, "late "+spec.FormatDuration(late))
	}
}

// errorShown is how much of an error's text a line has.
const errorShown = 70

func firstWordsOf(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	text, _, _ = strings.Cut(text, "; before: ") // the tries before the last
	if len(text) > errorShown {
		text = text[:errorShown] + "..."
	}
	return text
}

// flight is a run that has not ended.
func (p *played) flight(l ledger.Run) event {
	e := event{tick: l.Tick, attempt: l.Attempt, at: math.MaxInt64, word: "running", more: p.details(l.Attempt, l.Trigger)}
	e.shard(l.IsOpenTick, l.Shard, l.Shards)
	switch {
	case l.Pending():
		e.word = "pending"
		return e
	case l.IsOpenTick:
		e.why = fmt.Sprintf("%d of %d shards to end", l.Left, l.Shards)
	}
	p.lateBy(&e, l.Granted-l.Tick)
	if p.scenario.nodes && !l.IsOpenTick {
		e.more = append(e.more, "on "+l.NodeName)
	}
	return e
}

// state returns the lines about a job's state.
func (p *played) state(c *cluster, v ops.JobView) []string {
	at := func(s time.Time) string { return p.tick(c, s.UnixMilli()) }
	var lines []string
	if !v.Next.IsZero() {
		lines = append(lines, v.Name+" next "+at(v.Next))
	}
	if w := v.Pause; w != nil {
		until := ""
		if !w.Until.IsZero() {
			until = " until " + at(w.Until)
		}
		lines = append(lines, fmt.Sprintf("%s paused since %s%s by %s: %s", v.Name, at(w.Since), until, w.Author, w.Reason))
	}
	if v.Orphan {
		lines = append(lines, v.Name+" is an orphan")
	}
	if p.scenario.counts {
		words := []string{v.Name, "counts"}
		for o := jobs.OutcomeSucceeded; o <= jobs.OutcomeSuperseded; o++ {
			if n := v.Counts[o]; n > 0 {
				words = append(words, fmt.Sprintf("%s=%d", o, n))
			}
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}
