package ticks

import (
	"fmt"

	"github.com/escapement/escapement/cmd/peerbench/peers"
)

// measurement is one contender with one number of jobs.
type measurement struct {
	peer  peers.Peer
	jobs  int // due at each second
	nodes int // processes
	round int
}

// key is the same in all rounds.
func (m measurement) key() string { return fmt.Sprintf("%s %d", m.peer.Name, m.jobs) }

// plan returns all measurements in order: by round, then by number of jobs, then by contender.
func (o options) plan() (all []measurement) {
	for round := range o.rounds {
		for _, jobs := range o.jobs {
			for _, p := range o.who {
				if !p.Idle && (p.Jobs == 0 || p.Jobs == jobs) {
					all = append(all, measurement{p, jobs, o.processes(p), round + 1})
				}
			}
		}
		for _, p := range o.who {
			if p.Idle {
				all = append(all, measurement{p, 0, o.processes(p), round + 1})
			}
		}
	}
	return all
}

func (o options) processes(p peers.Peer) int {
	switch {
	case p.NoRedis:
		return 1
	case p.Nodes > 0:
		return p.Nodes
	}
	return o.nodes
}
