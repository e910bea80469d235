package figures

import (
	"cmp"
	"slices"
)

// Summary is the rounds of one contender with one number of jobs: counts are sums, the latest lag
// is the latest of all rounds, all other fields the median of the rounds. Disturbed rounds are left
// out where there is another one.
type Summary struct {
	Who, Title  string
	Jobs, Nodes int
	Rounds      int

	Tally
	Commands, Scripts  float64 // a tick that ran; where none is due, a second
	NodesCPU, RedisCPU float64 // seconds for 1,000 ticks that ran; where none is due, for a second
	NodeMiB, RedisMiB  float64
	Allocs             float64 // in the nodes, a tick that ran; where none is due, a second
	Problem            string
	Survived           bool
	Disturbed          bool // in each round other processes had the machine
}

// CPU returns the CPU time of nodes and Redis together.
func (s Summary) CPU() float64 { return s.NodesCPU + s.RedisCPU }

// Summaries returns the summaries of all contenders, by number of jobs, each in the order in which
// they first appear.
func (r Run) Summaries() []Summary {
	type key struct {
		who  string
		jobs int
	}
	var order []key
	rows := map[key][]Row{}
	for _, row := range r.Rows {
		k := key{row.Who, row.Jobs}
		if rows[k] == nil {
			order = append(order, k)
		}
		rows[k] = append(rows[k], row)
	}
	slices.SortStableFunc(order, func(a, b key) int { return cmp.Compare(a.jobs, b.jobs) })
	all := make([]Summary, len(order))
	for i, k := range order {
		calm := slices.DeleteFunc(slices.Clone(rows[k]), r.Disturbed)
		if len(calm) > 0 {
			all[i] = summary(calm, float64(r.Seconds))
			continue
		}
		all[i] = summary(rows[k], float64(r.Seconds))
		all[i].Disturbed = true
	}
	return all
}

func summary(rows []Row, seconds float64) Summary {
	s := Summary{Who: rows[0].Who, Title: rows[0].Title, Jobs: rows[0].Jobs, Nodes: rows[0].Nodes, Rounds: len(rows), Survived: true}
	for _, r := range rows {
		s.Due, s.Once, s.Twice = s.Due+r.Due, s.Once+r.Once, s.Twice+r.Twice
		s.Missed, s.Early = s.Missed+r.Missed, s.Early+r.Early
		s.Max = max(s.Max, r.Max)
		s.Problem = cmp.Or(s.Problem, r.Problem)
		s.Survived = s.Survived && r.Survived
	}
	of := func(f func(Row) float64) float64 { return median(rows, f) }
	per := func(f func(Row) float64, of float64) func(Row) float64 {
		return func(r Row) float64 {
			if r.Due == 0 {
				return f(r) / seconds
			}
			return f(r) * of / float64(max(1, r.Once+r.Twice))
		}
	}
	s.P50 = of(func(r Row) float64 { return r.P50 })
	s.P99 = of(func(r Row) float64 { return r.P99 })
	s.Commands = of(per(func(r Row) float64 { return float64(r.Commands) }, 1))
	s.Scripts = of(per(func(r Row) float64 { return float64(r.Scripts) }, 1))
	s.Allocs = of(per(func(r Row) float64 { return float64(r.Allocs) }, 1))
	s.NodesCPU = of(per(func(r Row) float64 { return r.NodesCPU }, 1000))
	s.RedisCPU = of(per(func(r Row) float64 { return r.RedisCPU }, 1000))
	s.NodeMiB = of(func(r Row) float64 { return float64(r.NodeRSS) / (1 << 20) })
	s.RedisMiB = of(func(r Row) float64 { return float64(r.RedisRSS) / (1 << 20) })
	return s
}

// median returns the middle value of f over rows, or the mean of the two in the middle.
func median(rows []Row, f func(Row) float64) float64 {
	all := make([]float64, len(rows))
	for i, r := range rows {
		all[i] = f(r)
	}
	slices.Sort(all)
	half := len(all) / 2
	if len(all)%2 == 1 {
		return all[half]
	}
	return (all[half-1] + all[half]) / 2
}
