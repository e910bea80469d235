//go:build race

package schedtest_test

// defaultSeeds is small under the race detector, which makes a seed take ten times as long.
const defaultSeeds = 60
