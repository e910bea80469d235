package cronlock

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/robfig/cron/v3"
)

// named is a job made by Named.
type named struct {
	name string
	f    func(ctx context.Context, run Run)
}

// Run implements cron.Job. An entry made with Once calls f instead.
func (n *named) Run() {
	panic(fmt.Sprintf("cronlock: job %q was called without a claim; add it to a cron made with cronlock.Once, and leave its calls to the cron", n.name))
}

// topLevel matches the name of a function that is declared in a package: "example.com/shop/jobs.Report". A function
// literal, a method value or an instance of a generic function has more behind the name.
var topLevel = regexp.MustCompile(`^(.*/)?[^/.]+\.[\pL_][\pL\p{Nd}_]*$`)

// identify returns the name of a job, and the function that runs it.
func identify(job cron.Job) (string, func(context.Context, Run), error) {
	switch j := job.(type) {
	case *named:
		return j.name, j.f, nil
	case cron.FuncJob:
		if j == nil {
			return "", nil, fmt.Errorf("the function of the job is nil")
		}
		name := runtime.FuncForPC(reflect.ValueOf(j).Pointer()).Name()
		if !topLevel.MatchString(name) {
			return "", nil, fmt.Errorf("%s is a function literal or a method, whose name may be another one on other machines; name it: AddJob(spec, cronlock.Named(name, f))", name)
		}
		return name, func(context.Context, Run) { j() }, nil
	}
	return "", nil, fmt.Errorf("a job of type %T has no name; name it: AddJob(spec, cronlock.Named(name, f)) with an f that calls its Run", job)
}

func checkText(what, s string, most int, without string) error {
	switch {
	case s == "":
		return fmt.Errorf("the %s is empty; use 1 to %d bytes of printable UTF-8", what, most)
	case len(s) > most:
		return fmt.Errorf("the %s has %d bytes; use at most %d", what, len(s), most)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl):
		return fmt.Errorf("the %s %q is not printable UTF-8; use text without control characters", what, s)
	case without != "" && strings.Contains(s, without):
		return fmt.Errorf("the %s %q contains %q; leave it out", what, s, without)
	}
	return nil
}
