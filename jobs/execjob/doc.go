// Package execjob runs a command as a job.
//
//	reg.MustAdd(jobs.Job{
//		Name:     "report",
//		Schedule: "*/5 * * * *",
//		Func:     execjob.New(execjob.Command{Command: []string{"sh", "-c", "make-report"}}),
//	})
//
// # What the command sees
//
// The node's own environment, without its ESCAPEMENT_ variables (they may hold the
// store's password) and with PWD for [Command.Dir], then the variables of [Command.Env],
// then those of the run:
// ESCAPEMENT_JOB, ESCAPEMENT_TICK (RFC 3339, UTC, milliseconds), ESCAPEMENT_TICK_MS,
// ESCAPEMENT_RUN, ESCAPEMENT_ATTEMPT, ESCAPEMENT_TRY, ESCAPEMENT_TOKEN, ESCAPEMENT_NODE,
// ESCAPEMENT_SHARD, ESCAPEMENT_SHARDS, ESCAPEMENT_PARAM, ESCAPEMENT_PAYLOAD and
// ESCAPEMENT_TRIGGER. Nothing is added to its arguments, which every user of the machine
// can read. Its input is empty.
//
// # How it ends
//
//	start ─► runs ─► exits                        its exit status is the run's result
//	           └─► the run's context ends ─► SIGTERM ─► 5 s ─► SIGKILL
//	                                              the result wraps the context's cause
//
// The command leads a process group of its own and the signals go to the whole group.
// What a command leaves running in its group when it exits is ended in the same way
// before the run ends: it would work on without a lease. A process that made itself a
// group or session of its own escapes this. On systems without process groups only the
// command itself is ended, at once.
//
// When the node itself is killed (SIGKILL, out of memory), its commands end too: the group
// gets SIGTERM, and SIGKILL half a second later, long before the lease is over. A shell
// beside each command sees to that, /bin/sh, which waits for the node's end and costs one more
// process. Without a shell, as in an image that has none, Linux kills the command
// itself but not what it started, and other Unix systems nothing. Windows ends nothing: there
// only the token stands between the old run and the next one.
//
// # Output
//
// Standard output and standard error go to the run's output ([jobs.Run.Output]), which
// keeps the last 64 KiB. The last lines, up to 1 KiB,
// are part of the error of a failed command. Each try of a run has an output of its own.
package execjob
