// Package figures is what a measuring run found: rows of one contender in one
// round, written as JSON by one command and drawn by others, and their medians.
package figures
