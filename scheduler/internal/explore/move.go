package explore

// Move is where the operator is with the move to another Redis.
type Move struct {
	Stage MoveStage
	Epoch int8
}

// MoveStage is one stage of a move.
//
//	NotMoving ── seal ──► SealedOld ── drain, copy ──► Copied ── open ──► Opened
//	    ▲                     │                          │
//	    └──── unseal ◄────────┴──── burn the epoch ──────┘
type MoveStage int8

// The stages.
const (
	NotMoving MoveStage = iota
	SealedOld
	Copied
	Opened
)

// mostMoves is how often a move is begun: once more after an undo.
const mostMoves = 2

// operate is the operator's next step of a move, forward or back.
func (w *world) operate(s State) {
	switch s.Move.Stage {
	case NotMoving:
		w.seal(s)
	case SealedOld:
		w.copyOver(s)
		w.undo(s)
	case Copied:
		w.send(s, Command{Kind: OpenLedger, Node: nobody, Ledger: 1, Epoch: s.Move.Epoch}, true)
		w.undo(s)
	case Opened:
	}
}

func (w *world) seal(s State) {
	if s.Move.Epoch == mostMoves {
		return
	}
	s.Move = Move{Stage: SealedOld, Epoch: s.Move.Epoch + 1}
	s.Ledgers[0].Sealed = true
	w.emit(Event{What: SealedLedger}, s)
}

// copyOver copies the old side to the new one, which belongs to the move from then on.
func (w *world) copyOver(s State) {
	old := s.Ledgers[0]
	leased := old.Shards[0].Phase == Leased || old.Shards[1].Phase == Leased
	if leased && w.on(DrainBeforeCopy) || s.Ledgers[1].Live {
		return
	}
	s.Move.Stage = Copied
	s.Ledgers[1] = old
	to := &s.Ledgers[1]
	to.Sealed, to.Live, to.Restarted, to.Epoch = false, false, true, s.Move.Epoch
	w.emit(Event{What: CopiedLedger}, s)
}

// open is the new side's script: it takes claims from now on.
func (w *world) open(s *State, c Command) Answer {
	l := &s.Ledgers[1]
	if l.Epoch == 0 || l.Epoch != c.Epoch && w.on(EpochOnOpen) {
		return Moved
	}
	l.Live = true
	return Settled
}

// undo burns the epoch on the new side, unless that is open already, and only then unseals.
func (w *world) undo(s State) {
	to := &s.Ledgers[1]
	if w.on(EpochOnOpen) {
		if to.Live {
			return
		}
		to.Epoch = 0
	}
	s.Ledgers[0].Sealed = false
	s.Move.Stage = NotMoving
	w.emit(Event{What: UndoneMove}, s)
}

// follow restarts an idle node with the address of the new Redis.
func (w *world) follow(s State, i int8) {
	if !w.Move || i == 0 || s.Nodes[i].Ledger == 1 || !s.Ledgers[1].Live || s.Nodes[i].Phase != Idle {
		return
	}
	w.replaceProcess(&s, i)
	s.Nodes[i].Ledger = 1
	w.emit(Event{What: Followed, Node: i}, s)
}
