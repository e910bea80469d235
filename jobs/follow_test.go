package jobs_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/escapement/escapement/jobs"
)

// following returns a registry of jobs written as "a b>a": b runs after a.
func following(t testing.TB, text string) *jobs.Registry {
	t.Helper()
	reg := jobs.NewRegistry()
	for _, word := range strings.Fields(text) {
		j := good()
		name, after, follows := strings.Cut(word, ">")
		if j.Name = name; follows {
			j.Schedule, j.After = "", after
		}
		if err := reg.Add(j); err != nil {
			t.Fatal(err)
		}
	}
	return reg
}

func TestRegistryCheck(t *testing.T) {
	var ring []string
	for i := range 12 {
		ring = append(ring, fmt.Sprintf("r%02d>r%02d", i, (i+5)%12))
	}
	for _, c := range []struct{ jobs, want string }{
		{"", ""},
		{"a b c", ""},
		{"a b>a c>b d>b", ""},
		{"z b>z", ""},
		{"a>a", `job "a": after: a job cannot run after itself: a -> a; give it a schedule`},
		{"b>a a>b", `job "a": after: jobs wait for each other in a circle: a -> b -> a; give one of them a schedule`},
		{"c>a a>b b>c", `job "a": after: jobs wait for each other in a circle: a -> b -> c -> a; give one of them a schedule`},
		// What waits for a cycle is mended with it.
		{"a>x b>a x>y y>x", `job "x": after: jobs wait for each other in a circle: x -> y -> x; give one of them a schedule`},
		{"a>y x>y y>x", `job "x": after: jobs wait for each other in a circle: x -> y -> x; give one of them a schedule`},
		{"eat x>aet", `job "x": after: there is no job "aet"; did you mean "eat"`},
		{"b>z", `job "b": after: there is no job "z"; name a job that is defined here`},
		{"report totals>reprot", `job "totals": after: there is no job "reprot"; did you mean "report"`},
		{"Report totals>report", `job "totals": after: there is no job "report"; did you mean "Report"`},
		{"mails mail>mial", `job "mail": after: there is no job "mial"; name a job that is defined here`}, // not itself
		{"d>c c>c b>no a>b", "job \"b\": after: there is no job \"no\"; name a job that is defined here\n" +
			"job \"c\": after: a job cannot run after itself: c -> c; give it a schedule"},
		{strings.Join(ring, " "), `job "r00": after: jobs wait for each other in a circle: ` +
			`r00 -> r05 -> r10 -> r03 -> r08 -> r01 -> r06 -> r11 -> 4 more -> r00; give one of them a schedule`},
	} {
		got := ""
		if err := following(t, c.jobs).Check(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.jobs, got, c.want)
		}
	}
}

// TestRegistryCheckTwin draws who follows whom and walks from every job, step by step.
func TestRegistryCheckTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "jobs")
		after := make(map[string]string)
		reg := jobs.NewRegistry()
		for i := range n {
			j := good()
			j.Name = fmt.Sprintf("%d", i)
			// One beyond the last is a job that is not there.
			if up := rapid.IntRange(-2, n).Draw(t, "after "+j.Name); up >= 0 {
				j.Schedule, j.After = "", fmt.Sprintf("%d", up)
			}
			after[j.Name] = j.After
			reg.MustAdd(j)
		}
		var want []string
		for i := range n {
			name := fmt.Sprintf("%d", i)
			if at := after[name]; at != "" {
				if _, known := after[at]; !known {
					want = append(want, name+" unknown")
				}
			}
			// On a cycle, and the least of it: walking on from it comes back and meets nothing less.
			least, at := true, after[name]
			for steps := 0; steps < n && at != "" && at != name; steps++ {
				least = least && at > name
				at = after[at]
			}
			if at == name && least {
				want = append(want, name+" cycle")
			}
		}
		var got []string
		for _, f := range eachFault(t, reg.Check()) {
			kind := "cycle"
			if strings.Contains(f.Msg, "there is no job") {
				kind = "unknown"
			}
			got = append(got, f.Job+" "+kind)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v: faults %v, want %v", after, got, want)
		}
	})
}

func eachFault(t *rapid.T, err error) (list []*jobs.FieldError) {
	if err == nil {
		return nil
	}
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		var f *jobs.FieldError
		if !errors.As(e, &f) || f.Field != "after" {
			t.Fatalf("%T: %v", e, e)
		}
		list = append(list, f)
	}
	return list
}
