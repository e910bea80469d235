//go:build !race

package sharding

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Nodes that beat every third of the TTL stay in the roster whatever single steps
// Redis' clock makes, and a dead one leaves it one TTL of true time after its last
// beat, or, because a step back makes it look fresh, one TTL after that step.
func TestStepsOfTheClockDropNobody(t *testing.T) {
	const ttl = 6 * time.Second
	rapid.Check(t, func(t *rapid.T) {
		server, client := embedRapid(t)
		defer server.Close()
		defer client.Close()
		r := NewRoster(client, RosterConfig{TTL: ttl})
		living := rapid.IntRange(1, 4).Draw(t, "living")
		clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var elapsed, doomed time.Duration // doomed: when the dead one must be gone
		check := func(id string) View {
			server.Mini().SetTime(clock)
			v, err := r.Beat(t.Context(), Member{Node: Node{ID: id}})
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		check("dead")
		for i := range living {
			check(fmt.Sprint("n", i))
		}
		doomed = ttl
		for round := range rapid.IntRange(4, 15).Draw(t, "rounds") {
			step := time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 4, 5, 60, 86400, -1, -60, -86400}).Draw(t, "step")) * time.Second
			clock = clock.Add(step)
			if step < 0 {
				doomed = elapsed + ttl
			}
			for i := range living {
				// The beats of a round are spread over a third of the TTL.
				part := ttl / 3 / time.Duration(living)
				clock, elapsed = clock.Add(part), elapsed+part
				v := check(fmt.Sprint("n", i))
				got := memberIDs(v.Members)
				for k := range living {
					if !slices.Contains(got, fmt.Sprint("n", k)) {
						t.Fatalf("round %d: n%d was dropped: %q", round, k, got)
					}
				}
				if elapsed >= doomed+ttl/3 && slices.Contains(got, "dead") {
					t.Fatalf("round %d: dead is still there after %v, doomed at %v", round, elapsed, doomed)
				}
			}
		}
	})
}
