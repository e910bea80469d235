package print

import (
	"fmt"

	"github.com/escapement/escapement/scheduler/ops"
)

// Percent is how far a run is, behind its outcome in a table: " 60%", or " 120" without a known
// total; "" without reported progress.
func Percent(p *ops.ProgressView) string {
	switch {
	case p == nil:
		return ""
	case p.Total == 0:
		return fmt.Sprintf(" %d", p.Done)
	}
	return fmt.Sprintf(" %d%%", int64(100*float64(p.Done)/float64(p.Total)))
}

// Progress returns how far a run is, in words.
func Progress(p *ops.ProgressView) string {
	if p == nil {
		return ""
	}
	text := fmt.Sprint(p.Done)
	if p.Total > 0 {
		text += fmt.Sprintf(" of %d,%s", p.Total, Percent(p))
	}
	if p.Note != "" {
		text += ", " + p.Note
	}
	if !p.End.IsZero() {
		text += "; it would end at " + Stamp(p.End)
	}
	return text
}
