// Package testseam lets tests set what no user needs to set: a node's wall clock, the source of
// its ids, and what it knows of its machine.
package testseam

import "time"

// Seam is the part of a scheduler.Config that is not public.
type Seam struct {
	// Wall is the node's own wall clock. It never decides when a tick is due; Redis' clock does.
	// Default time.Now.
	Wall func() time.Time
	// NewID makes the ids of the node and of its runs. They must be unique over all nodes, for
	// ever, without '|' and line breaks. New and the agenda's goroutine call it; a function that
	// nodes share must allow concurrent calls. Default: uuid v7.
	NewID func() string
	// ZoneData is the version of the machine's time zone rules, by which a simulation must not differ.
	// Default cron.ZoneData.
	ZoneData func() string
}

// Of returns the seam of a *scheduler.Config. Package scheduler sets it, because only that package
// sees the field.
var Of func(config any) *Seam
