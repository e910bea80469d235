// Package ops reads and operates a namespace from any process: it triggers a job and waits for its
// outcome, lists, pauses, cancels. It needs no node.
//
//	client, err := scheduler.Connect("redis://localhost:6379")
//	admin, err := ops.New(client, "escapement")
//	id, err := admin.Trigger(ctx, "settle-orders", ops.TriggerOptions{})
//	run, err := admin.WaitRun(ctx, id)
//
// Views hold times, durations and outcomes as Go has them. Encode writes their JSON, which
// encoding/json does not: a duration is a number of milliseconds there.
package ops
