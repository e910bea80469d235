//go:build race

package schedtest

// defaultPolicies is small under the race detector, which makes a seed take ten times as long.
const defaultPolicies = 12

// defaultFailovers is how many seeds TestFailover plays when nobody says.
const defaultFailovers = 4
