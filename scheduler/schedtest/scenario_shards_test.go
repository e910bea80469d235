package schedtest

import (
	"os"
	"strings"
	"testing"
)

// TestShardScenarios plays those scenarios that are about shards. TestScenarios does so too; this one is quick.
func TestShardScenarios(t *testing.T) {
	for _, file := range scenarioFiles(t) {
		if !strings.Contains(file, "shards") {
			continue
		}
		t.Run(strings.TrimSuffix(file[len(scenarios)+1:], ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := parseScenario(file, string(text))
			if err != nil {
				t.Fatal(err)
			}
			p := s.playOn(t)
			if d := diff(s.want, p.got, s.wantAt, file); d != "" || len(p.broken) > 0 {
				t.Errorf("%q\n%s", p.broken, d)
			}
		})
	}
}
