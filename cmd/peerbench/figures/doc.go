// Package figures has the results of a measuring run: rows of one contender in one round, written
// as JSON by one command and read by another, and their medians.
package figures
