package lane

// Master is a Redis master as a node finds it.
type Master struct {
	Addr string // "" for an only server
	Up   bool   // it answers and takes writes
}

// Masters are the masters of the lanes.
func (n *Lanes) Masters() []Master {
	answers := n.Health.answers()
	all := make([]Master, 0, len(n.all()))
	for _, l := range n.all() {
		up := answers
		if n.clustered {
			up = !l.breaker.open()
		}
		all = append(all, Master{l.addr, up})
	}
	return all
}

// NoNodes is how many overdue jobs are known to have no living node that can run them.
func (n *Lanes) NoNodes() (known int64) {
	for _, l := range n.all() {
		known += l.sweep.unrunnable.count.Load()
	}
	return known
}
