package jobs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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
			j.Schedule, j.After = "", strings.Split(after, ",")
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
		// A job that waits for a circle is not a fault of its own.
		{"a>x b>a x>y y>x", `job "x": after: jobs wait for each other in a circle: x -> y -> x; give one of them a schedule`},
		{"a>y x>y y>x", `job "x": after: jobs wait for each other in a circle: x -> y -> x; give one of them a schedule`},
		{"eat x>aet", `job "x": after: there is no job "aet"; did you mean "eat"`},
		{"b>z", `job "b": after: there is no job "z"; name a job that is defined here`},
		{"report totals>reprot", `job "totals": after: there is no job "reprot"; did you mean "report"`},
		{"Report totals>report", `job "totals": after: there is no job "report"; did you mean "Report"`},
		{"mails mail>mial", `job "mail": after: there is no job "mial"; name a job that is defined here`}, // not itself
		{"a b c>a,b d>c e>d,a", ""},
		{"a c>a,no", `job "c": after: there is no job "no"; name a job that is defined here`},
		{"b>a,c a c>b,a d>c", `job "b": after: jobs wait for each other in a circle: b -> c -> b; give one of them a schedule`},
		// The shortest of several circles is named.
		{"a>b,c b>d,a d>a c>a", `job "a": after: jobs wait for each other in a circle: a -> b -> a; give one of them a schedule`},
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

// TestRegistryCheckTwin draws the upstreams of each job, and checks for each two jobs whether the
// one leads to the other.
func TestRegistryCheckTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "jobs")
		after := make([][]int, n)
		reg := jobs.NewRegistry()
		for i := range n {
			j := good()
			j.Name = fmt.Sprintf("%d", i)
			// One beyond the last is a job that is not there.
			after[i] = rapid.SliceOfNDistinct(rapid.IntRange(0, n), 0, 2, rapid.ID[int]).Draw(t, "after "+j.Name)
			for _, up := range after[i] {
				j.Schedule, j.After = "", append(j.After, fmt.Sprintf("%d", up))
			}
			reg.MustAdd(j)
		}
		leads := make([][]bool, n)
		for i := range n {
			leads[i] = make([]bool, n)
			for _, up := range after[i] {
				if up < n {
					leads[i][up] = true
				}
			}
		}
		for range n {
			for i := range n {
				for k := range n {
					for via := range n {
						leads[i][k] = leads[i][k] || leads[i][via] && leads[via][k]
					}
				}
			}
		}
		var want []string
		for i := range n {
			if slices.Contains(after[i], n) {
				want = append(want, fmt.Sprintf("%d unknown", i))
			}
			least := leads[i][i]
			for k := range i {
				least = least && (!leads[i][k] || !leads[k][i])
			}
			if least {
				want = append(want, fmt.Sprintf("%d cycle", i))
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

// TestRegistryCheckRoots: jobs that one job follows must begin with the same ticks.
func TestRegistryCheckRoots(t *testing.T) {
	for _, c := range []struct {
		edit func(a, b *jobs.Job)
		want string
	}{
		{func(*jobs.Job, *jobs.Job) {}, ""},
		{func(_, b *jobs.Job) { b.Schedule = "0 6 * * *" }, `"c" begins with "*/5 * * * *", and "b" with "0 6 * * *"`},
		{func(_, b *jobs.Job) { b.TimeZone = "Europe/Berlin" }, `"b" with "CRON_TZ=Europe/Berlin */5 * * * *"`},
		{func(_, b *jobs.Job) { b.EndAt = time.UnixMilli(4_000_000_000_000) }, `they never end the same tick; give those the same schedule`},
		// H is another minute for each of them.
		{func(a, b *jobs.Job) { a.Schedule, b.Schedule = "H * * * *", "H * * * *" }, `they never end the same tick`},
		{func(_, b *jobs.Job) { b.Schedule, b.After = "", []string{"c"} }, ""},
	} {
		a, b, reg := good(), good(), jobs.NewRegistry()
		a.Name, b.Name = "a", "b"
		c.edit(&a, &b)
		reg.MustAdd(a)
		reg.MustAdd(b)
		reg.MustAdd(jobs.Job{Name: "c", After: []string{"a"}, Func: nothing})
		reg.MustAdd(jobs.Job{Name: "join", After: []string{"c", "b"}, Func: nothing})
		got := ""
		if err := reg.Check(); err != nil {
			got = err.Error()
		}
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) || got != "" && !strings.HasPrefix(got, `job "join": after: `) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestUpstreamsFormat: what every version reads stays as it was; anything else is a list, which an
// older version refuses.
func TestUpstreamsFormat(t *testing.T) {
	for _, c := range []struct {
		after []string
		when  jobs.When
		want  string
	}{
		{[]string{"a"}, jobs.WhenSucceeded, `"after":"a"}`},
		{[]string{"a"}, jobs.WhenFailed, `"after":["a"],"when":"failed"}`},
		{[]string{"a", "b"}, jobs.WhenSucceeded, `"after":["a","b"]}`},
		{[]string{"a", "b"}, jobs.WhenAny, `"after":["a","b"],"when":"any"}`},
	} {
		d := jobs.Job{Name: "x", After: c.after, When: c.when}.Definition()
		text, err := json.Marshal(d)
		if err != nil || !strings.HasSuffix(string(text), c.want) {
			t.Errorf("%v %v: %s, %v", c.after, c.when, text, err)
		}
		back, err := jobs.ParseDefinition(text)
		if err != nil || back.Digest() != d.Digest() || !slices.Equal(back.Job.After, c.after) || back.Job.When != c.when {
			t.Errorf("%s is read as %+v, %v", text, back, err)
		}
	}
	one, err := jobs.ParseDefinition([]byte(`{"v":1,"name":"x","schedule":"","time_zone":"UTC","ttl_ms":15000,"after":["a"]}`))
	if want := (jobs.Job{Name: "x", After: []string{"a"}}).Definition().Digest(); err != nil || one.Job.Definition().Digest() != want {
		t.Errorf("a list of one is another job than its name: %v", err)
	}
}
