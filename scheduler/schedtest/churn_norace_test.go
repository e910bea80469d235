//go:build !race

package schedtest

// defaultChurn is how many seeds TestChurn plays when nobody says.
const defaultChurn = 10

// churnCases is how many seeds each test of a single case plays.
const churnCases = 20
