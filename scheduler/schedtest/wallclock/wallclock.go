// Package wallclock gives a node a wall clock that is wrong, to show that a node does not go by it.
package wallclock

import (
	"time"

	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/internal/testseam"
)

// Set makes wall the wall clock of nodes that are made with cfg.
func Set(cfg *scheduler.Config, wall func() time.Time) { testseam.Of(cfg).Wall = wall }
