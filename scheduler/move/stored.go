package move

import (
	"encoding/json"
	"strconv"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger/catalog"
	"github.com/escapement/escapement/scheduler/internal/ledger/export"
)

// storedJob returns the catalog's part of a job that was stored at run time: its latest definition
// has every field.
func storedJob(d export.Document) (catalog.Change, bool) {
	var latest jobs.Definition
	for _, text := range d.Definitions {
		if def, err := jobs.ParseDefinition([]byte(text)); err == nil && def.Stored > latest.Stored {
			latest = def
		}
	}
	text, err := json.Marshal(latest.AsStored())
	return catalog.Change{Job: d.Job, Definition: string(text), Version: strconv.FormatInt(latest.Stored, 10)},
		err == nil && d.Entry != "" && latest.Stored > 0
}
