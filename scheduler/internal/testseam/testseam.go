// Package testseam gives tests what no user needs to set: a node's wall clock and the maker of its ids.
package testseam

import "time"

// Seam is a part of a scheduler.Config that is not public.
type Seam struct {
	// Wall is the node's own wall clock. It never decides when a tick fires, for Redis' clock does. Default time.Now.
	Wall func() time.Time
	// NewID makes the ids of the node and of its runs. They must be unique over all nodes, for ever, and hold neither '|' nor a line
	// break. It is called from New and from the agenda's goroutine only; one that several nodes share must bear concurrent calls.
	// Default: uuid v7.
	NewID func() string
}

// Of returns the seam of a *scheduler.Config. Package scheduler sets it, for only there the field is known.
var Of func(config any) *Seam
