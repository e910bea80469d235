package schedtest

import (
	"fmt"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
)

// refusedBy returns a line for each setting that cannot be judged: see spec.Setting.Judged.
func refusedBy(j jobs.Job) (lines []string) {
	for _, s := range spec.All() {
		if s.Judged == "" && jobs.Settings.Given(&j, s) {
			lines = append(lines, fmt.Sprintf("%s: %s", s.Field, s.Unjudged))
		}
	}
	return lines
}
