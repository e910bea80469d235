package schedtest

import (
	"fmt"
	"strings"

	"github.com/escapement/escapement/scheduler/ledger"
)

// script is one of the ledger's, as the simulation knows it on the wire.
type script struct {
	op     string // what it does: claim, settle, ...
	broken string // the text that Redis runs instead, "" for none
}

// scriptsOf are the ledger's scripts by SHA-1, with what a plan breaks in them.
func scriptsOf(p Plan) map[string]*script {
	all := make(map[string]*script)
	for _, s := range ledger.Scripts() {
		x := &script{op: s.Name()}
		if edits := p.broken[s.Name()]; len(edits) > 0 {
			x.broken = s.Source()
			for i := 0; i+1 < len(edits); i += 2 {
				if strings.Count(x.broken, edits[i]) != 1 {
					panic(fmt.Sprintf("schedtest: script %s has not got this text once: %s", s.Name(), edits[i]))
				}
				x.broken = strings.Replace(x.broken, edits[i], edits[i+1], 1)
			}
		}
		all[s.Hash()] = x
	}
	return all
}

// broken is the command that Redis carries out for this one: another, if the plan breaks the script
// that it calls.
func (c *cluster) broken(args []string) []string {
	s := c.scripts[scriptOf(args)]
	if s == nil || s.broken == "" {
		return args
	}
	return append([]string{"EVAL", s.broken}, args[2:]...)
}
