package inspect

import (
	"context"
	"slices"

	"github.com/escapement/escapement/scheduler/internal/cluster"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/roster"
)

// Idle is how many jobs a node holds and does not claim, because another definition is stored: of
// its generation, or of another one.
type Idle struct{ Superseded, Standby int }

// IdleJobs counts idle jobs for each set of definitions that living nodes hold. It examines the
// jobs that these nodes hold in different definitions, for all nodes hold the stored definition of
// the rest, or soon will. Of nodes on standby it counts all jobs. With an UnreachableError, it
// counts among the readable jobs.
func IdleJobs(ctx context.Context, l *ledger.Ledger, of *roster.Roster) (map[string]Idle, error) {
	around, _, _, err := cluster.ReadRoster(ctx, l, of, nil, cluster.PartsNeeded())
	if err != nil {
		return nil, err
	}
	around, members, _, err := cluster.ReadRoster(ctx, l, of, around, around.Differing())
	if err != nil {
		return nil, err
	}
	generation, idle := make(map[string]string), make(map[string]Idle) // of a set: no two generations have the same digests
	for _, m := range members {
		if generation[m.Set] = m.Generation; m.State == roster.StateStandby {
			idle[m.Set] = Idle{Standby: m.Jobs}
		}
	}
	held := make(map[string]map[string]string) // job -> digest -> generation
	for set, holding := range around.Sets {
		for job, digest := range holding.All() {
			if held[job] == nil {
				held[job] = make(map[string]string, len(around.Sets))
			}
			held[job][digest] = generation[set]
		}
	}
	var differ []string
	for job, digests := range held {
		if len(digests) > 1 {
			differ = append(differ, job)
		}
	}
	slices.Sort(differ)
	stored, left := query.Digests(ctx, l, differ)
	if left != nil && !unreachable(left) {
		return nil, left
	}
	for set, holding := range around.Sets {
		n, waits := idle[set]
		for _, job := range differ {
			digest, _ := holding.Digest(job)
			its, known := held[job][stored[job]]
			switch {
			case waits || digest == "" || stored[job] == "" || digest == stored[job]:
			case known && its != generation[set]:
				n.Standby++
			default:
				n.Superseded++
			}
		}
		idle[set] = n
	}
	return idle, left
}
