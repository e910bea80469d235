//go:build !race

package schedtest

// defaultPolicies is how many seeds TestPolicies plays when nobody says.
const defaultPolicies = 120

// defaultFailovers is how many seeds TestFailover plays when nobody says.
const defaultFailovers = 48
