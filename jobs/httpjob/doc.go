// Package httpjob calls a URL as a job.
//
//	call, err := httpjob.New(httpjob.Options{URL: "https://example.org/settle", Expect: "200,204"})
//	if err != nil {
//		return err
//	}
//	reg.MustAdd(jobs.Job{Name: "settle", Schedule: "*/5 * * * *", Timeout: time.Minute, Func: call})
//
// # The request
//
// The server gets the headers of [Options], and the run's headers: Escapement-Job, Escapement-Tick
// (RFC 3339, UTC, milliseconds), Escapement-Tick-Ms, Escapement-Run, Escapement-Attempt,
// Escapement-Try, Escapement-Node, Escapement-Shard, Escapement-Shards, Escapement-Param (if there
// is one), Escapement-Trigger, and the fencing token as Fencing-Token. A server that stores the
// largest token, and refuses smaller ones, is safe from a run that lost its lease; fence.Handler
// does that. The payload of a run by hand replaces the body of the options. A context with a trace
// ([jobs.WithTraceparent]) adds the header traceparent, in place of the options'.
//
// # How it ends
//
//	sent ─► the answer's head ─► its body to the end ─► the status is compared with Expect
//	  │             │                  └─► over 8 MiB: the rest is not read
//	  └─────────────┴─► the context ends, or the network fails: an error
//
// A status outside of Options.Expect is an error with the status and the first line of the body. It
// is [jobs.Permanent] for 4xx without 408, 425 and 429; the job's Retry repeats a request after any
// other error. A redirect is a status and is not followed. The default client sends a request once
// for each try. For that it uses a new connection for each GET, HEAD and OPTIONS, and keeps
// connections of other methods.
//
// With [Options.Result] the body of an expected answer is also the run's result
// ([jobs.Run.SetResult]): the payload of the jobs that follow. An answer without a body has none. A
// body that is no JSON, or too large, does not fail the run: the log and the output give the
// reason.
//
// # Time
//
// The run's context bounds the call: set the job's Timeout. Without one a call has 1 minute. Within
// that, the default client waits 10 s for a connection and 10 s for the TLS handshake. It uses the
// proxy of the environment (HTTPS_PROXY and so on).
//
// # Output and secrets
//
// The last 64 KiB of the body are stored with the run ([jobs.Run.Output]), whatever the status.
// Errors show the URL without user, password and query, and no value of a header. The server's own
// text is stored and quoted unchanged.
package httpjob
