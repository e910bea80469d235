package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// shelve keeps one definition of one generation beside, and wants the answer's word and digest. What is answered
// differs or foreign has changed nothing.
func (r *rig) shelve(t *testing.T, generation string, first bool, a Aside, word, digest string) Shelved {
	t.Helper()
	before := dump(t, r.client)
	a.Text = []byte(a.Job + " of " + a.Digest)
	got := must(r.led.Shelve(t.Context(), generation, first, []Aside{a}))[0]
	if got.Word != word || got.Digest != digest {
		t.Errorf("shelve %s %+v: %+v, want %s %s", generation, a, got, word, digest)
	}
	if wrong := differences(before, dump(t, r.client)); word != "kept" && len(wrong) > 0 {
		t.Errorf("answered %s it has changed %s", word, strings.Join(wrong, "\n"))
	}
	return got
}

// beside compares what is kept: generation, job, digest and revision, and how long ago it was seen.
func (r *rig) beside(t *testing.T, foreign int, want ...string) {
	t.Helper()
	kept, strange, err := r.led.Beside(t.Context())
	got := each(kept, func(a Aside) string {
		return fmt.Sprintf("%s %s %s %s %s", a.Generation, a.Job, a.Digest, a.Revision, millisOf(r.now-a.Seen))
	})
	if err != nil || strange != foreign || !slices.Equal(got, want) {
		t.Errorf("beside are %q and %d that cannot be read, %v; want %q and %d", got, strange, err, want, foreign)
	}
}

// TestShelve: what is kept beside gives way only to who has seen it.
func TestShelve(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		a := Aside{Job: "a", Digest: "d1", Revision: "5"}
		r.shelve(t, "neo", true, a, "kept", "d1")
		r.pass(t, time.Minute)
		r.beside(t, 0, "neo a d1 5 1m0s")
		a.Revision = "4"
		r.shelve(t, "neo", false, a, "kept", "d1")
		r.beside(t, 0, "neo a d1 5 0s")
		b := Aside{Job: "a", Digest: "d2", Revision: "3"}
		for _, was := range []string{"", "d0"} { // another digest than was seen
			b.Was = was
			r.shelve(t, "neo", false, b, "differs", "d1")
		}
		b.Was = "d1"
		r.shelve(t, "neo", false, b, "kept", "d2")
		r.beside(t, 0, "neo a d2 3 0s")
		a.Was = "d2"
		if got := r.shelve(t, "neo", false, a, "kept", "d1").Former; !slices.Equal(got, []string{"d2"}) {
			t.Errorf("former: %q", got)
		}
		r.client.HSet(t.Context(), r.led.keys[0].beside, "old|a", "2|what|ever")
		r.shelve(t, "old", true, a, "foreign", "")
		r.beside(t, 1, "neo a d1 4 0s")
		r.gate(t, "1|10|white|sealed|m1|there")
		if _, err := r.led.Shelve(t.Context(), "neo", true, []Aside{a}); !errors.Is(err, ErrClosed) {
			t.Errorf("kept where it is closed: %v", err)
		}
	})
}

// TestShelveIsBounded: what nobody has written for 30 days goes when the next one writes; of eight generations the one that was not
// seen for longest gives way to a ninth, if that is long.
func TestShelveIsBounded(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		a := Aside{Job: "a", Digest: "d1"}
		r.shelve(t, "neo", true, a, "kept", "d1")
		r.pass(t, besideFor)
		r.shelve(t, "g0", true, a, "kept", "d1")
		r.beside(t, 0, "g0 a d1  0s", "neo a d1  720h0m0s")
		r.pass(t, time.Millisecond)
		r.shelve(t, "g0", true, a, "kept", "d1")
		r.beside(t, 0, "g0 a d1  0s")
		for i := 1; i < BesideMax; i++ {
			r.pass(t, time.Millisecond)
			r.shelve(t, fmt.Sprint("g", i), true, a, "kept", "d1")
		}
		r.pass(t, besideYields-8*time.Millisecond)
		if _, err := r.led.Shelve(t.Context(), "new", true, []Aside{a}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "8 other generations") {
			t.Errorf("a ninth: %v", err)
		}
		r.pass(t, 8*time.Millisecond)
		r.shelve(t, "new", true, a, "kept", "d1")
		if all, _, err := r.led.Beside(t.Context()); err != nil || len(all) != BesideMax || all[0].Generation != "g1" {
			t.Errorf("beside are %+v, %v, want them without g0", all, err)
		}
	})
}
