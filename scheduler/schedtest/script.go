package schedtest

import (
	"maps"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// scriptsOf returns the names (claim, settle, ...) of the scripts that the simulation recognises on
// the wire, by SHA-1.
func scriptsOf(p Plan) map[string]string {
	all := maps.Clone(p.scripts)
	if all == nil {
		all = make(map[string]string)
	}
	for _, s := range ledger.Scripts() {
		all[s.Hash()] = s.Name()
	}
	return all
}
