//go:build !race

package schedtest

// defaultPolicies is how many seeds TestPolicies plays when nobody says.
const defaultPolicies = 120
