package jobs

// maxRunsMost bounds Job.MaxRuns.
const maxRunsMost = 1_000_000_000

func (j Job) checkMaxRuns(f *faults) {
	switch {
	case j.MaxRuns < 0 || j.MaxRuns > maxRunsMost:
		f.add("max_runs", "%d is outside 0 to %d", j.MaxRuns, maxRunsMost)
	case j.MaxRuns > 0 && len(j.After) > 0:
		f.add("max_runs", "is not used: a job with after has no schedule; leave it out, or give it to %q", clip(j.After[0]))
	}
}

// Reopens reports whether a job that has had its MaxRuns by another definition may have ticks again by this one.
func (d Definition) Reopens(old Definition) bool {
	return old.MaxRuns > 0 && (d.MaxRuns == 0 || d.MaxRuns > old.MaxRuns)
}
