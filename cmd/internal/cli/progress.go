package cli

import (
	"fmt"

	"github.com/escapement/escapement/scheduler/ops"
)

// percent is how far a run is, behind its outcome in a table: " 60%", or " 120" without a known
// total; "" without reported progress.
func percent(p *ops.ProgressView) string {
	switch {
	case p == nil:
		return ""
	case p.Total == 0:
		return fmt.Sprintf(" %d", p.Done)
	}
	return fmt.Sprintf(" %d%%", int64(100*float64(p.Done)/float64(p.Total)))
}

// progress returns how far a run is, in words.
func progress(p *ops.ProgressView) string {
	if p == nil {
		return ""
	}
	text := fmt.Sprint(p.Done)
	if p.Total > 0 {
		text += fmt.Sprintf(" of %d,%s", p.Total, percent(p))
	}
	if p.Note != "" {
		text += ", " + p.Note
	}
	if !p.End.IsZero() {
		text += "; it would end at " + stamp(p.End)
	}
	return text
}
