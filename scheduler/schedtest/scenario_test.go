package schedtest

import (
	"flag"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

var (
	rewrite      = flag.Bool("rewrite", false, "write what came of each scenario below its line")
	scenarioSeed = flag.Uint64("scenario.seed", 0, "play the scenarios with this seed instead of their own: other latencies, the same histories")
)

const scenarios = "testdata/scenarios"

// TestScenarios plays every file of testdata/scenarios and compares the resulting history, line by
// line. go test -run TestScenarios/overlap/queue -v prints the story of one.
func TestScenarios(t *testing.T) {
	files := scenarioFiles(t)
	if len(files) < 200 {
		t.Errorf("%d scenarios", len(files))
	}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), scenarios+"/"), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Scenario{File: file, Seed: *scenarioSeed, Rewrite: *rewrite}.Run(t)
		})
	}
}

func scenarioFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(scenarios, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".txt" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
