// Package ops reads and operates a namespace from any process: it triggers a job and waits for its
// outcome, lists, pauses, cancels. It needs no node.
//
//	client, err := scheduler.Connect("redis://localhost:6379")
//	admin, err := ops.New(client, "escapement")
//	run, err := admin.Trigger(ctx, "settle-orders", ops.TriggerOptions{})
//	v, err := admin.WaitRun(ctx, run)
package ops
