package cli

import (
	"fmt"
	"time"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler"
)

// The words of node.claim_ahead, besides a duration.
const (
	aheadAuto = "auto"
	aheadOff  = "off"
)

// ahead is node.claim_ahead as the library has it: 0 for auto, negative for off.
func (n Node) ahead() (time.Duration, error) {
	switch n.ClaimAhead {
	case aheadAuto:
		return 0, nil
	case aheadOff:
		return -1, nil
	}
	d, err := spec.ParseDuration(n.ClaimAhead)
	if err != nil || d <= 0 || d > scheduler.ClaimAheadMax {
		return 0, fmt.Errorf("%s is not %s, %s or a duration up to %s", print.Quote(n.ClaimAhead), aheadAuto, aheadOff, spec.FormatDuration(scheduler.ClaimAheadMax))
	}
	return d, nil
}
