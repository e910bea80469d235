package schedtest

import (
	"maps"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// scriptsOf are the scripts that the simulation knows on the wire, by SHA-1: what each does (claim, settle, ...).
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
