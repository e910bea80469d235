package audit

import (
	"fmt"
	"testing"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// The recorded steps of a cursor must lead, without gap or overlap, from the base to the cursor.
func TestChain(t *testing.T) {
	run := func(prev, next, token int64) ledger.Row {
		return ledger.Row{Prev: prev, Next: next, Tick: prev, Run: fmt.Sprint("r", token), Token: token, Shards: 1, Attempt: 1}
	}
	span := func(prev, next int64) ledger.Row { return ledger.Row{Ranged: true, Prev: prev, Next: next, Tick: prev} }
	turn := func(prev, next int64) ledger.Row {
		return ledger.Row{Ranged: true, Prev: prev, Next: next, Tick: prev, Outcome: jobs.OutcomeSuperseded}
	}
	for name, c := range map[string]struct {
		base, cursor int64
		rows         []ledger.Row
		open         []ledger.Run
		wrong        int
	}{
		"nothing yet":                            {base: 10, cursor: 10},
		"never anything":                         {},
		"one run":                                {base: 10, cursor: 20, rows: []ledger.Row{run(10, 20, 1)}},
		"a run in flight":                        {base: 10, cursor: 20, open: []ledger.Run{{Prev: 10, Next: 20}}},
		"a run that ended late":                  {base: 10, cursor: 30, rows: []ledger.Row{span(20, 30), run(10, 20, 1)}},
		"one that ended after its time":          {base: 20, cursor: 30, rows: []ledger.Row{span(20, 30), run(10, 20, 1)}},
		"one still in flight from before":        {base: 20, cursor: 30, rows: []ledger.Row{span(20, 30)}, open: []ledger.Run{{Prev: 10, Next: 20}}},
		"a run by hand":                          {base: 10, cursor: 10, rows: []ledger.Row{{Tick: 15, Run: "t", Token: 1, Request: "t"}}},
		"a step back":                            {base: 1000, cursor: 70, rows: []ledger.Row{turn(1000, 60), run(60, 70, 1)}},
		"back and forth":                         {base: 50, cursor: 80, rows: []ledger.Row{run(50, 1000, 1), turn(1000, 60), run(60, 70, 2), turn(70, 1000), turn(1000, 75), run(75, 80, 3)}},
		"a step back under a run":                {base: 50, cursor: 70, rows: []ledger.Row{turn(1000, 60), run(50, 1000, 1)}, open: []ledger.Run{{Prev: 60, Next: 70}}},
		"a step to where it stood":               {base: 50, cursor: 70, rows: []ledger.Row{turn(60, 60), run(60, 70, 2), run(50, 60, 1)}},
		"an end":                                 {base: 50, cursor: 0, rows: []ledger.Row{run(50, 0, 1)}},
		"an end, all trimmed":                    {base: 0, cursor: 0, rows: []ledger.Row{run(50, 60, 1)}},
		"an end and a new schedule":              {base: 50, cursor: 90, rows: []ledger.Row{turn(0, 80), run(50, 0, 1), run(80, 90, 2)}},
		"a step back, and a tick again":          {base: 50, cursor: 60, rows: []ledger.Row{run(50, 60, 1), turn(60, 50), {Prev: 50, Next: 60, Tick: 50, Run: "r2", Token: 2, Attempt: 2}}},
		"a step back over two runs":              {base: 50, cursor: 60, rows: []ledger.Row{run(50, 60, 1), run(60, 70, 2), turn(70, 50), {Prev: 50, Next: 60, Tick: 50, Run: "r3", Token: 3, Attempt: 2}}},
		"runs of another job's ticks":            {base: 50, cursor: 60, rows: []ledger.Row{{Prev: 50, Next: 55, Tick: 50, Run: "r9", Token: 9, Trigger: "after"}, run(50, 60, 1)}, open: []ledger.Run{{Prev: 50, Next: 55, Tick: 52, ID: "r8", Trigger: "after"}}},
		"a schedule after another's":             {base: 7, cursor: 90, rows: []ledger.Row{{Prev: 50, Next: 55, Tick: 50, Run: "r9", Token: 9, Trigger: "after"}, {Ranged: true, Next: 80, Outcome: jobs.OutcomeSuperseded, Reason: ledger.ReasonReplacedDef}, run(80, 90, 10)}},
		"a further attempt":                      {base: 50, cursor: 60, rows: []ledger.Row{run(50, 60, 1), {Tick: 50, Run: "r2", Token: 2, Attempt: 2}}},
		"a gap behind a step back":               {base: 1000, cursor: 80, rows: []ledger.Row{turn(1000, 60), run(70, 80, 1)}, wrong: 1},
		"a gap before a step back":               {base: 50, cursor: 70, rows: []ledger.Row{turn(1000, 60), run(60, 70, 1)}, wrong: 1},
		"a step back that took a tick again":     {base: 50, cursor: 60, rows: []ledger.Row{run(50, 60, 1), turn(60, 50), run(50, 60, 2)}, wrong: 1},
		"two runs from one cursor":               {base: 50, cursor: 60, rows: []ledger.Row{run(50, 60, 1), run(50, 60, 2)}, wrong: 2},
		"a cursor that went on":                  {base: 50, cursor: 70, rows: []ledger.Row{run(50, 60, 1)}, wrong: 1},
		"a cursor that ended with no last tick":  {base: 50, cursor: 0, rows: []ledger.Row{run(50, 60, 1)}, wrong: 1},
		"a token twice, and a run":               {base: 50, cursor: 70, rows: []ledger.Row{run(50, 60, 1), run(60, 70, 1)}, wrong: 2},
		"the same tick by hand is another thing": {base: 50, cursor: 60, rows: []ledger.Row{run(50, 60, 1), {Tick: 50, Run: "t", Token: 2, Request: "t", Attempt: 1, Shards: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			check := newBookCheck(query.JobSnapshot{Entry: ledger.Entry{Base: c.base, Cursor: c.cursor}, Rows: c.rows, Open: c.open, Complete: true})
			check.closes()
			check.doubles()
			if len(check.found) != c.wrong {
				t.Errorf("found %v, want %d", check.found, c.wrong)
			}
		})
	}
}
