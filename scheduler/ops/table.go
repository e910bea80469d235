package ops

// Operations returns the table of all operations, in the order of openapi.json.
func Operations() []Row {
	return []Row{
		rowNamespace, rowOverview, rowEnds, rowListJobs, rowJobNames, rowGraph, rowStoredJobs, rowHandlers, rowPreview,
		rowGetJob, rowPutJob, rowDeleteJob, rowTicks, rowTrigger, rowPause, rowResume, rowRewind,
		rowBackfill, rowCancelBackfill, rowBackfills,
		rowListRuns, rowGetRun, rowCancel, rowRerun,
		rowNodes, rowDrains, rowDrain, rowResumeNode, rowIdle,
		rowLocks, rowLock, rowRelease,
		rowGenerations, rowPromote, rowVerify, rowProblems, rowAudit,
	}
}
