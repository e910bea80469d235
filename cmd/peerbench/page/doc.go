// Package page shows the figures of a measuring run: a table and a list of losses
// in Markdown. docs/benchmarks.md keeps them between two markers.
package page
