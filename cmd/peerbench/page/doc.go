// Package page shows the figures of a measuring run: a table and a list of losses
// in Markdown, and plots as SVG text. docs/benchmarks.md keeps them between two markers.
package page
