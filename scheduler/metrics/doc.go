// Package metrics shows a node's state to Prometheus.
//
//	m := metrics.New(metrics.Config{})
//	node, err := scheduler.New(client, reg, scheduler.Config{Hooks: scheduler.JoinHooks(m.Hooks(), own)})
//	m.Watch(node)
//	client.AddHook(m.RedisHook())  // durations of Redis calls
//	go m.Run(ctx, admin)           // an ops.Client: last successes from before this process
//	prometheus.MustRegister(m)     // or: http.Handle("/metrics", metrics.Handler(m))
//
// A Collector counts its own node's events. Add up over all nodes, and take the largest last
// success of a job:
//
//	sum by (escapement_job, outcome) (increase(escapement_ticks_total[1h]))
//	max by (escapement_job) (escapement_job_last_success_timestamp_seconds)
//
// Events come through the node's hooks, which never delay a run. When a burst fills their queue,
// events are dropped, and escapement_hooks_dropped_total counts them; counters of ticks are then
// too small.
//
// docs/metrics.md explains every metric.
package metrics
