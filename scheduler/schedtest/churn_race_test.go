//go:build race

package schedtest

// defaultChurn is small under the race detector, which makes a seed take ten times as long.
const defaultChurn = 2

// churnCases is how many seeds each test of a single case plays.
const churnCases = 4
