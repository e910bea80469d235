package explore

// crash kills a process, pause stops one. Both are drawn from the same budget as the network's
// faults: what matters is how they meet, not how many there are.
func (w *world) crash(s State, i int8) {
	if !w.Crashes || s.Left.Faults == 0 {
		return
	}
	s.Left.Faults--
	w.replaceProcess(&s, i)
	s.Nodes[i] = Node{Power: Down, Digest: s.Nodes[i].Digest}
	w.emit(Event{What: Crashed, Node: i}, s)
}

func (w *world) pause(s State, i int8) {
	if !w.Pauses || s.Left.Faults == 0 {
		return
	}
	s.Left.Faults--
	s.Nodes[i].Power = Paused
	w.emit(Event{What: WasPaused, Node: i}, s)
}

func (w *world) resume(s State, i int8) {
	s.Nodes[i].Power = Up
	hearDeadline(&s.Nodes[i])
	w.emit(Event{What: Resumed, Node: i}, s)
}

func (w *world) restart(s State, i int8) {
	s.Nodes[i].Power = Up
	w.emit(Event{What: Restarted, Node: i}, s)
}

// replaceProcess puts a new process in a node's place: it knows nothing, and what the old one
// held or sent is nobody's.
func (w *world) replaceProcess(s *State, i int8) {
	n := s.Nodes[i]
	s.Nodes[i] = Node{Digest: n.Digest}
	for l := range s.Ledgers {
		for j := range s.Ledgers[l].Shards {
			if sh := &s.Ledgers[l].Shards[j]; sh.Phase == Leased && sh.Holder == i {
				sh.Holder = nobody
			}
		}
	}
	for j := range s.Flight {
		if f := &s.Flight[j]; f.Kind != None && f.Node == i {
			f.Node = nobody
		}
	}
}

// failover puts the copy that lacks the last write in the ledger's place.
func (w *world) failover(s State) {
	if s.Left.Failovers == 0 {
		return
	}
	s.Left.Failovers--
	s.Ledgers[0] = s.Ledgers[1]
	s.Ledgers[0].Restarted = true
	s.Ledgers[1] = s.Ledgers[0]
	w.emit(Event{What: FailedOver}, s)
}
