// Package httpjob calls a URL as a job.
//
//	call, err := httpjob.New(httpjob.Options{URL: "https://example.org/settle", Expect: "200,204"})
//	if err != nil {
//		return err
//	}
//	reg.MustAdd(jobs.Job{Name: "settle", Schedule: "*/5 * * * *", Timeout: time.Minute, Func: call})
//
// # What the server sees
//
// The headers of [Options], and those of the run: Escapement-Job, Escapement-Tick (RFC 3339,
// UTC, milliseconds), Escapement-Tick-Ms, Escapement-Run, Escapement-Attempt, Escapement-Try,
// Escapement-Node, Escapement-Shard, Escapement-Shards, Escapement-Param (if there is one),
// Escapement-Trigger, and the token as Fencing-Token. A server that keeps the largest token
// it has seen, and refuses a smaller one, is safe from a run that lost its lease. The payload
// of a manual run is the body, in place of the one in the options.
//
// # How it ends
//
//	sent ─► the answer's head ─► its body to the end ─► the status is judged
//	  │             │                  └─► over 8 MiB: the rest is left unread
//	  └─────────────┴─► the context ends, or the network fails: an error
//
// A status that Options.Expect does not name is an error with the status and the first line
// of the body. It is [jobs.Permanent] when asking again cannot help, which is every 4xx but
// 408, 425 and 429; anything else is tried again as far as the job's retry policy goes. A
// redirect is a status like any other and is not followed. The client used by default sends a
// request once for each try. For that it takes a connection of its own for each GET, HEAD and
// OPTIONS, and keeps those of other methods for the next call.
//
// # Time
//
// The run's context bounds the call: give the job a Timeout. A call of a job without one is
// given 1 minute, so that it can never hang. Within that, the client used by default waits
// 10 s for a connection and 10 s for the TLS handshake. It uses the proxy that the
// environment names (HTTPS_PROXY and so on).
//
// # What is kept, and what is not said
//
// The last 64 KiB of the body are kept with the run ([jobs.Run.Output]), whatever the
// status. Errors name the URL without its user, password and query, and no value of any
// header. What the server itself says is kept and quoted as it came.
package httpjob
