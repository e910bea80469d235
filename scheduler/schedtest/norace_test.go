//go:build !race

package schedtest_test

// defaultSeeds is how many seeds TestSim simulates when nobody says.
const defaultSeeds = 200
