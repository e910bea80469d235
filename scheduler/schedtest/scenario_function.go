package schedtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
)

// rule is the behaviour of a job's function in the runs that fit the rule.
type rule struct {
	tick         *time.Duration // since the start
	attempt, try int            // 0: any
	shard        *int           // nil: any
	by           *jobs.Trigger  // manual or backfill; nil: any
	deeds        []deed
}

// deed is one thing that a function does, one after another.
type deed struct {
	do   string
	span time.Duration
	text string
}

func (r rule) fits(run *jobs.Run) bool {
	return (r.tick == nil || run.Tick().Equal(bubbleBegins.Add(*r.tick))) && (r.attempt == 0 || r.attempt == run.Attempt()) &&
		(r.try == 0 || r.try == run.Try()) && (r.shard == nil || *r.shard == run.Shard()) && (r.by == nil || *r.by == run.Trigger())
}

// work is the job's function: the last fitting rule decides; without one it succeeds at once.
func (a *actor) work(ctx context.Context, run *jobs.Run) error {
	var deeds []deed
	for _, r := range a.rules {
		if r.fits(run) {
			deeds = r.deeds
		}
	}
	for _, s := range deeds {
		if err := s.take(ctx, run); err != nil {
			return err
		}
	}
	return nil
}

func (s deed) take(ctx context.Context, run *jobs.Run) error {
	timer := time.NewTimer(s.span)
	defer timer.Stop()
	switch s.do {
	case "run":
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	case "stubborn":
		<-timer.C
	case "hang":
		<-ctx.Done()
		return context.Cause(ctx)
	case "fail":
		return errors.New(s.text)
	case "permanent":
		return jobs.Permanent(errors.New(s.text))
	case "panic":
		panic(s.text)
	case "payload":
		if string(run.Payload()) != s.text {
			return fmt.Errorf("the payload is %q", run.Payload())
		}
	case "param":
		if run.Param() != s.text {
			return fmt.Errorf("the parameter is %q", run.Param())
		}
	default: // succeed
	}
	return nil
}

// parseRules reads: [SELECTOR ...:] DEED [then DEED ...] [; ...], with the selectors tick +T,
// attempt N, try N, shard N and by hand.
func parseRules(line string) ([]rule, error) {
	var all []rule
	for text := range strings.SplitSeq(line, ";") {
		r := rule{}
		if selector, deeds, found := strings.Cut(text, ":"); found && !strings.Contains(selector, `"`) {
			if err := r.selectors(selector); err != nil {
				return nil, err
			}
			text = deeds
		}
		for part := range strings.SplitSeq(text, " then ") {
			s, err := parseDeed(part)
			if err != nil {
				return nil, err
			}
			r.deeds = append(r.deeds, s)
		}
		all = append(all, r)
	}
	return all, nil
}

func (r *rule) selectors(text string) error {
	words := strings.Fields(text)
	for len(words) >= 2 {
		switch n, err := strconv.Atoi(words[1]); {
		case words[0] == "by" && (words[1] == "hand" || words[1] == "backfill"):
			by := jobs.TriggerManual
			if words[1] == "backfill" {
				by = jobs.TriggerBackfill
			}
			r.by = &by
		case words[0] == "tick":
			d, err := time.ParseDuration(strings.TrimPrefix(words[1], "+"))
			if err != nil {
				return fmt.Errorf("tick %s: not a time such as +10s", words[1])
			}
			r.tick = &d
		case words[0] == "attempt" && err == nil:
			r.attempt = n
		case words[0] == "shard" && err == nil:
			r.shard = &n
		case words[0] == "try" && err == nil:
			r.try = n
		default:
			return fmt.Errorf("%q selects no runs; write tick +10s, attempt 2, try 1, shard 0 or by hand before the colon", text)
		}
		words = words[2:]
	}
	if len(words) > 0 {
		return fmt.Errorf("%q: %s needs a value", text, words[0])
	}
	return nil
}

func parseDeed(text string) (deed, error) {
	words, err := split(text)
	if err != nil || len(words) == 0 {
		return deed{}, errors.Join(err, fmt.Errorf("%q: it does nothing; write succeed", text))
	}
	s := deed{do: words[0]}
	rest := words[1:]
	switch s.do {
	case "succeed", "hang":
	case "run", "stubborn":
		if len(rest) == 0 {
			return s, fmt.Errorf("%s: how long?", s.do)
		}
		if s.span, err = time.ParseDuration(rest[0]); err != nil {
			return s, fmt.Errorf("%s %s: not a time such as 25s", s.do, rest[0])
		}
		rest = rest[1:]
	case "fail", "permanent", "panic", "payload", "param":
		s.text = "it did not work"
		if len(rest) > 0 {
			s.text, rest = rest[0], rest[1:]
		}
	default:
		return s, fmt.Errorf("%q: a function can run T, stubborn T, hang, succeed, fail, permanent, panic, payload and param", s.do)
	}
	if len(rest) > 0 {
		return s, fmt.Errorf("%s: %q does not belong there", s.do, rest[0])
	}
	return s, nil
}
