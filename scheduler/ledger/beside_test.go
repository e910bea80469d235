package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// shelve keeps one definition of one generation beside, and wants the answer's word and digest.
func (s *promoteTale) shelve(generation string, first bool, a Aside, word, digest string) Shelved {
	a.Text = []byte(a.Job + " of " + a.Digest)
	got, err := s.r.led.Shelve(s.ctx, generation, first, []Aside{a})
	if err != nil {
		s.bad("shelve %s %+v: %v", generation, a, err)
		return Shelved{}
	}
	if got[0].Word != word || got[0].Digest != digest {
		s.bad("shelve %s %+v: %+v, want %s %s", generation, a, got[0], word, digest)
	}
	return got[0]
}

// beside is what is kept: generation, job, digest and revision, and how long ago it was seen.
func (s *promoteTale) beside() (all []string) {
	kept, _, err := s.r.led.Beside(s.ctx)
	s.does("read what is beside", err)
	for _, a := range kept {
		if want := a.Job + " of " + a.Digest; string(a.Text) != want {
			s.bad("the definition of %s is %q, want %q", a.Job, a.Text, want)
		}
		all = append(all, fmt.Sprintf("%s %s %s %s %s", a.Generation, a.Job, a.Digest, a.Revision, time.Duration(s.r.now-a.Seen)*time.Millisecond))
	}
	return all
}

// former are all the former digests in a job's partition, beside or not.
func (s *promoteTale) former(job string) map[string]string {
	return s.r.client.HGetAll(s.ctx, s.r.led.keys[s.r.led.Partition(job)].former).Val()
}

func (s *promoteTale) clear() {
	for _, k := range s.r.led.keys {
		s.does("clear", s.r.client.Del(s.ctx, k.beside, k.former).Err())
	}
	s.setGates("1|10|white|open||", "1|10|white|open||")
}

func (s *promoteTale) shelving() {
	s.clear()
	a := Aside{Job: "a", Digest: "d1", Revision: "5"}
	s.shelve("neo", true, a, "kept", "d1")
	s.is("beside", s.beside(), []string{"neo a d1 5 0s"})
	s.r.pass(s.tb, time.Minute)
	a.Revision = "4"
	s.is("revision", s.shelve("neo", false, a, "kept", "d1").Revision, "5")
	s.is("seen again", s.beside(), []string{"neo a d1 5 0s"})
	b := Aside{Job: "a", Digest: "d2", Revision: "3"}
	s.keeps("another digest", nil, func() error { s.shelve("neo", false, b, "differs", "d1"); return nil })
	b.Was = "d0"
	s.keeps("another digest than was seen", nil, func() error {
		s.is("is told", s.shelve("neo", false, b, "differs", "d1").Revision, "5")
		return nil
	})
	b.Was = "d1"
	s.shelve("neo", false, b, "kept", "d2")
	s.is("replaced", s.beside(), []string{"neo a d2 3 0s"})
	a.Was = "d2"
	s.is("former", s.shelve("neo", false, a, "kept", "d1").Former, []string{"d2"})
	for i := range 9 {
		b.Was, b.Digest = map[bool]string{true: "d1", false: fmt.Sprint("e", i-1)}[i == 0], fmt.Sprint("e", i)
		s.shelve("neo", false, b, "kept", b.Digest)
	}
	s.is("former", s.shelve("neo", false, a, "differs", "e8").Former, []string{"e7", "e6", "e5", "e4", "e3", "e2", "e1", "e0"})
	key := s.r.led.keys[s.r.led.Partition("a")].beside
	s.does("plant", s.r.client.HSet(s.ctx, key, "old|a", "2|what|ever").Err())
	s.keeps("a record that is not understood", nil, func() error { s.shelve("old", true, a, "foreign", ""); return nil })
	if _, foreign, err := s.r.led.Beside(s.ctx); err != nil || foreign != 1 {
		s.bad("%d records are foreign, %v; want 1", foreign, err)
	}
	for _, shut := range []string{"1|10|white|sealed|m1|there", "2|what"} {
		s.setGates(shut, shut)
		s.keeps("kept where it is closed", ErrClosed, func() error {
			_, err := s.r.led.Shelve(s.ctx, "neo", true, []Aside{{Job: "a", Digest: "e8"}})
			return err
		})
	}
}

// ageing: what nobody has written for 30 days is dropped by the first batch of whoever writes next.
func (s *promoteTale) ageing() {
	s.clear()
	a := Aside{Job: "a", Digest: "d1"}
	s.shelve("neo", true, a, "kept", "d1")
	a.Was, a.Digest = "d1", "d2"
	s.shelve("neo", false, a, "kept", "d2") // so that it has a former one
	a.Was = ""
	s.r.pass(s.tb, 30*oneDay)
	s.shelve("two", true, a, "kept", "d2")
	s.is("after 30 days", s.beside(), []string{"neo a d2  720h0m0s", "two a d2  0s"})
	s.r.pass(s.tb, time.Millisecond)
	s.shelve("two", false, a, "kept", "d2")
	s.is("looked for by nobody", len(s.beside()), 2)
	s.shelve("two", true, a, "kept", "d2")
	s.is("after more than 30 days", s.beside(), []string{"two a d2  0s"})
	s.is("former", s.former("a"), map[string]string{})
}

// crowding: of eight generations one gives way to a ninth, the one that was not seen for longest, and only if that is long.
func (s *promoteTale) crowding() {
	s.clear()
	a := Aside{Job: "a", Digest: "d1"}
	same := []string{"a"} // jobs of one partition
	for i := 0; len(same) < 3; i++ {
		if job := fmt.Sprint("j", i); s.r.led.Partition(job) == s.r.led.Partition("a") {
			same = append(same, job)
		}
	}
	// g1 has been there for longest, but one of its jobs was written last of all; g5 and g6 come after it.
	for _, job := range []string{same[0], same[2]} {
		s.shelve("g1", true, Aside{Job: job, Digest: "d1"}, "kept", "d1")
	}
	s.r.pass(s.tb, time.Minute)
	for _, g := range []string{"g6", "g5"} {
		s.shelve(g, true, a, "kept", "d1")
		s.shelve(g, false, Aside{Job: "a", Digest: "d2", Was: "d1"}, "kept", "d2")
	}
	s.r.pass(s.tb, time.Minute)
	for _, g := range []string{"g0", "g2", "g3", "g4", "g7"} {
		s.shelve(g, true, a, "kept", "d1")
	}
	s.shelve("g1", true, Aside{Job: same[1], Digest: "d1"}, "kept", "d1")
	s.r.pass(s.tb, besideYields-time.Minute-time.Millisecond)
	full := func(generation string) {
		s.keeps("a ninth, "+generation, ErrRefused, func() error {
			_, err := s.r.led.Shelve(s.ctx, generation, true, []Aside{a})
			if err == nil || !strings.Contains(err.Error(), "8 other generations") {
				s.bad("it says: %v", err)
			}
			return err
		})
	}
	full("new")
	s.r.pass(s.tb, time.Millisecond)
	s.shelve("g7", true, a, "kept", "d1")
	s.is("generations, when one of them writes", s.kinds(), []string{"g0", "g1", "g2", "g3", "g4", "g5", "g6", "g7"})
	s.shelve("new", true, a, "kept", "d1")
	s.is("generations, with a new one", s.kinds(), []string{"g0", "g1", "g2", "g3", "g4", "g6", "g7", "new"})
	s.is("former of what went", s.former("a"), map[string]string{"g6|a": "d1"})
	s.shelve("newer", true, a, "kept", "d1")
	s.is("generations, with another", s.kinds(), []string{"g0", "g1", "g2", "g3", "g4", "g7", "new", "newer"})
	full("newest")
}

// kinds are the generations that are beside.
func (s *promoteTale) kinds() []string {
	kept, _, err := s.r.led.Beside(s.ctx)
	s.does("read what is beside", err)
	var names []string
	for _, a := range kept {
		names = append(names, a.Generation)
	}
	return slices.Compact(names)
}
