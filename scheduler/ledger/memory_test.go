package ledger

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// TestNoMemoryLeft: a Redis that takes no more writes refuses what adds something, and then the call has
// done nothing at all; when it has memory again the same call does it all.
func TestNoMemoryLeft(t *testing.T) {
	useScripts(t, steered...)
	r := realRig(t, oneConfig)
	ctx := t.Context()
	r.chainOf(t, "a", "follower")
	for _, job := range []string{"free", "back", "crash"} {
		r.create(t, job)
	}
	r.pass(t, time.Minute)
	for _, job := range []string{"a", "back", "crash"} {
		r.want(t, Granted, attempts(2, tickClaim(job, job+"-1", 1)))
	}
	must(r.led.Trigger(ctx, "free", Trigger{Run: "t"}))
	must(r.led.Trigger(ctx, "free", Trigger{Run: "u"}))
	r.pass(t, ttl+time.Millisecond)
	calls := []func() (string, error){
		func() (string, error) {
			w, err := r.led.Settle(ctx, []Report{{Job: "a", Run: "a-1", Outcome: jobs.OutcomeFailed, Output: []byte("x")}})
			return string(append(w, "")[0]), err
		},
		func() (string, error) {
			w, err := r.led.Unclaim(ctx, []Return{{Job: "back", Run: "back-1"}})
			return string(append(w, "")[0]), err
		},
		func() (string, error) {
			w, err := r.led.Reap(ctx, r.now, r.identity, []Lease{{Job: "crash", Run: "crash-1"}})
			return string(append(w, "")[0]), err
		},
		func() (string, error) { w, err := r.led.Cancel(ctx, "free", "u", "ann", ""); return string(w), err },
		func() (string, error) {
			a, err := r.led.Claim(ctx, node, r.now, []Claim{pendingClaim("free", "t"), lateClaim("back", "r", 2, 3)})
			return append(a, Answer{})[0].Verdict.String(), err
		},
	}
	for i, call := range calls {
		before := dump(t, r.client)
		r.client.ConfigSet(ctx, "maxmemory", "1")
		word, err := call()
		r.client.ConfigSet(ctx, "maxmemory", "0")
		if err == nil {
			t.Errorf("call %d is answered %q", i, word)
		}
		if changed := differences(before, dump(t, r.client)); len(changed) > 0 {
			t.Errorf("call %d failed and changed %v", i, changed)
		}
		if word, err = call(); err != nil {
			t.Errorf("call %d, with memory: %q, %v", i, word, err)
		}
	}
	r.sound(t)
}
