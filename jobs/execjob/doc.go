// Package execjob runs a command as a job.
//
//	reg.MustAdd(jobs.Job{
//		Name:     "report",
//		Schedule: "*/5 * * * *",
//		Func:     execjob.New(execjob.Command{Command: []string{"sh", "-c", "make-report"}}),
//	})
//
// # The command's environment
//
// The command gets the node's environment, without its ESCAPEMENT_ variables (they may hold the
// password of Redis) and with PWD for [Command.Dir]; then the variables of [Command.Env]; then the
// run's variables: ESCAPEMENT_JOB, ESCAPEMENT_TICK (RFC 3339, UTC, milliseconds),
// ESCAPEMENT_TICK_MS, ESCAPEMENT_RUN, ESCAPEMENT_ATTEMPT, ESCAPEMENT_TRY, ESCAPEMENT_TOKEN,
// ESCAPEMENT_NODE, ESCAPEMENT_SHARD, ESCAPEMENT_SHARDS, ESCAPEMENT_PARAM, ESCAPEMENT_PAYLOAD and
// ESCAPEMENT_TRIGGER; and ESCAPEMENT_GROUP, by which the command is found when its node dies while
// it starts the command. The fencing token is ESCAPEMENT_TOKEN: send it with each write. Nothing is
// added to the arguments, which every user of the machine can read. The input is empty. A context
// with a trace ([jobs.WithTraceparent]) adds TRACEPARENT, in place of any other one.
//
// # Checkpoints and progress
//
// With [Command.Checkpoints] there are two more variables, with names of files in a directory of the run's own, which is deleted at
// its end:
//
//   - ESCAPEMENT_CHECKPOINT_FILE holds the run's checkpoint ([jobs.Run.Saved]) when the command
//     starts; without a checkpoint there is no file. A new content is saved ([jobs.Run.Save])
//     within a second, and once more when the command has failed. Write another file in the same
//     directory and rename it, so that no half of it is saved.
//   - ESCAPEMENT_PROGRESS_FILE is for one line, "done total note" ([jobs.Run.Progress]), such as "120 200 page 120". Total and note
//     may be left out. The node reads it once a second.
//
// A checkpoint of more than 64 KiB is not saved, and a progress file of more than 4 KiB is not
// read; nor is a file that is not regular. The log and the output report it once, and the command
// goes on.
//
// # A result for the jobs that follow
//
// With [Command.Result] the variable ESCAPEMENT_RESULT_FILE names a file in a directory of the
// run's own. JSON in this file when the command exits with status 0 is the run's result
// ([jobs.Run.SetResult]): the payload of the jobs that follow. Without a file, or with an empty
// one, there is no result. A file that is no JSON, or too large, does not fail the run: there is no
// result, and the log and the output give the reason.
//
// # How it ends
//
//	start ─► runs ─► exits                        its exit status is the run's result
//	           ├─► the run's context ends ─► SIGTERM ─► 5 s ─► SIGKILL
//	           │                                  the result wraps the context's cause
//	           └─► its lease is over, its node stands still or is killed ─► SIGTERM ─► 0.5 s ─► SIGKILL
//
// The command leads a process group, and the signals go to the whole group. Processes that
// the command leaves in its group when it exits are ended in the same way before the run
// ends, because they would go on without a lease. A process in another group or session is
// not ended. On systems without process groups only the command itself is ended, at once.
//
// A shell runs with each command: /bin/sh, or /bin/bash where only its read has a timeout. It ends
// the group when the node is killed (SIGKILL, out of memory), and at the local deadline of the
// run's lease ([jobs.Run.Lease]) when the node stands still. Renewals reach it through a pipe. It
// kills half a second after SIGTERM, or after half of the lease's margin if that is less, so before
// the lease can be another's. In an image without a shell, Linux kills the command of a killed node
// but not the processes that it started, and other Unix systems kill nothing; a node that stands
// still keeps its commands. Windows kills nothing. There only the token distinguishes the old run
// from the next one.
//
// A command that cannot be ended, because it has become another user or hangs in the kernel, holds
// its run: nothing may run beside it. The log and the output report it a second after SIGKILL, and
// SIGKILL is sent again each second.
//
// A command that cannot be started for a reason of the machine, such as too many open files, is a
// [jobs.NodeFault].
//
// # Output
//
// Standard output and standard error go to the run's output ([jobs.Run.Output]), which
// keeps the last 64 KiB. The error of a failed command has the last lines, up to 1 KiB. Each
// try of a run has its own output.
package execjob
