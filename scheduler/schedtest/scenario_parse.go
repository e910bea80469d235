package schedtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
)

// bubbleBegins is when every bubble begins.
var bubbleBegins = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// timetable is a parsed scenario.
type timetable struct {
	file     string
	above    string // the text above the line, as it is
	plan     Plan
	given    []jobs.Job // by the caller
	versions [][]*actor
	acts     []operation
	zone     *time.Location // ticks are shown as clocks there show them; nil: as offsets from the start
	nodes    bool           // the history names the nodes
	counts   bool           // the history has the jobs' counters
	shards   bool           // the history has the shards of ticks
	hidden   []string       // late, ran: spans that are not predictable to the second
	want     []string       // the lines below the line
	wantAt   int            // the number of the first of them
}

// actor is a job of a scenario and the rules of its function.
type actor struct {
	job   jobs.Job
	rules []rule
}

// names are the jobs of all versions, in the order in which the file names them.
func (s *timetable) names() []string { return s.plan.jobNames() }

// parseScenario reads a file; the error joins all faults, each beginning with file:line.
func parseScenario(file, text string, given ...jobs.Job) (*timetable, error) {
	s := &timetable{file: file, versions: make([][]*actor, 1), given: given, plan: Plan{Seed: 1, Nodes: 1}}
	above, below, found := strings.Cut(text, "\n---\n")
	s.above = above
	r := &reader{s: s}
	for i, line := range strings.Split(above, "\n") {
		if err := r.line(line); err != nil {
			r.errs = append(r.errs, fmt.Errorf("%s:%d: %w", file, i+1, err))
		}
	}
	end := strings.Count(above, "\n") + 2
	if !found {
		r.errs = append(r.errs, fmt.Errorf("%s:%d: there is no line --- with the history below it", file, end-1))
	}
	if !strings.HasPrefix(above, "# ") {
		r.errs = append(r.errs, fmt.Errorf("%s:1: the first line must say what the scenario shows: # A run that ...", file))
	}
	s.wantAt = end + 1
	for line := range strings.Lines(below) {
		s.want = append(s.want, strings.TrimRight(line, "\n"))
	}
	if len(r.errs) == 0 {
		r.errs = append(r.errs, s.finish())
	}
	return s, errors.Join(r.errs...)
}

// finish makes the plan.
func (s *timetable) finish() error {
	for v, actors := range s.versions {
		var all []jobs.Job
		for _, a := range actors {
			if a.job.Func == nil || len(a.rules) > 0 {
				a.job.Func = a.work
			}
			all = append(all, a.job)
		}
		if v == 0 {
			s.plan.Jobs = all
		} else {
			s.plan.Versions = append(s.plan.Versions, all)
		}
	}
	for v := range s.versions {
		for _, a := range s.versions[v] { // the history judges jobs with changed upstreams
			if first := s.versions[0]; v > 0 && slices.ContainsFunc(first, func(b *actor) bool { return b.job.Name == a.job.Name && !sameUpstreams(a.job, b.job) }) {
				s.plan.unjudgedJobs = append(s.plan.unjudgedJobs, a.job.Name)
			}
		}
	}
	for _, o := range s.acts {
		if o.job != "" && !slices.Contains(s.names(), o.job) {
			return fmt.Errorf("%s:%d: there is no job %q; the jobs are %s", s.file, o.line, o.job, strings.Join(s.names(), ", "))
		}
		if end := s.plan.withDefaults().For; o.when > end {
			return fmt.Errorf("%s:%d: at %s: the scenario is over at %s", s.file, o.line, o.when, end)
		}
	}
	if err := s.plan.withDefaults().validate(); err != nil {
		return fmt.Errorf("%s: %w", s.file, err)
	}
	return nil
}

// reader reads the part above the line.
type reader struct {
	s    *timetable
	no   int
	last *actor // the job that indented lines belong to
	errs []error
}

func (r *reader) line(line string) error {
	r.no++
	if cut := strings.TrimSpace(line); cut == "" || strings.HasPrefix(cut, "#") {
		return nil
	}
	words, err := split(line)
	if err != nil {
		return err
	}
	if line[0] == ' ' {
		if r.last == nil {
			return errors.New("an indented line says what a job does; there is no job above it")
		}
		rules, err := parseRules(strings.TrimSpace(line))
		r.last.rules = append(r.last.rules, rules...)
		return err
	}
	r.last = nil
	o := &options{words: words[1:]}
	err = r.command(words[0], o)
	return errors.Join(err, o.done())
}

func (r *reader) command(word string, o *options) error {
	s := r.s
	switch word {
	case "nodes":
		s.plan.Nodes = int(o.number())
	case "label":
		return s.label(o)
	case "partitions":
		s.plan.Config.Partitions = int(o.number())
	case "seed":
		s.plan.Seed = uint64(o.number())
	case "for":
		s.plan.For = o.span()
	case "drain_timeout":
		s.plan.Config.DrainTimeout = o.span()
	case "max_running":
		s.plan.Config.MaxRunning = int(o.number())
	case "zone":
		var err error
		s.zone, err = time.LoadLocation(o.next("a zone"))
		return err
	case "show":
		switch what := o.next("nodes, counts or shards"); what {
		case "nodes":
			s.nodes = true
		case "counts":
			s.counts = true
		case "shards":
			s.shards = true
		default:
			return fmt.Errorf("show %q: nodes, counts and shards can be shown", what)
		}
	case "hide":
		what := o.next("late or ran")
		if what != "late" && what != "ran" {
			return fmt.Errorf("hide %q: late and ran can be hidden", what)
		}
		s.hidden = append(s.hidden, what)
	case "version":
		if v := int(o.number()); v != len(s.versions) {
			return fmt.Errorf("version %d: the next one is %d", v, len(s.versions))
		}
		s.versions = append(s.versions, nil)
	case "job":
		return r.job(o)
	case "at":
		return r.at(o)
	case "when":
		return r.when(o)
	default:
		return fmt.Errorf("there is no word %q; a line begins with one of nodes, label, partitions, seed, for, drain_timeout, max_running, zone, show, hide, version, job, at, when", word)
	}
	return nil
}

// label reads: label NODE key:value[,key:value ...].
func (s *timetable) label(o *options) error {
	if s.plan.Labels == nil {
		s.plan.Labels = make(map[string]map[string]string)
	}
	node := o.next("a node")
	s.plan.Labels[node] = o.labels("labels")
	return nil
}

// base returns the caller's job of that name, or a new one.
func (s *timetable) base(name string) jobs.Job {
	for _, j := range s.given {
		if j.Name == name {
			return j
		}
	}
	return jobs.Job{Name: name, TTL: 6 * time.Second}
}

// job reads: job NAME ["SCHEDULE"] [setting=value ...].
func (r *reader) job(o *options) error {
	j := r.s.base(o.next("a name"))
	var after string
	if o.text("after", &after) {
		j.Schedule, j.After = "", strings.Split(after, ",")
	}
	if words := o.plain(); len(j.After) == 0 && (j.Schedule == "" || words > 0) {
		j.Schedule = o.next("a schedule")
	}
	o.text("zone", &j.TimeZone)
	for _, set := range []struct {
		key  string
		into interface{ UnmarshalText([]byte) error }
	}{{"overlap", &j.Overlap}, {"catch_up", &j.CatchUp}, {"on_crash", &j.OnCrash}, {"when", &j.When}, {"retry_on", &j.Retry.On}} {
		var word string
		if o.text(set.key, &word) {
			if err := set.into.UnmarshalText([]byte(word)); err != nil {
				return err
			}
		}
	}
	o.count("catch_up_max", &j.CatchUpMax)
	o.count("rerun_max", &j.RerunMax)
	o.count("shards", &j.Shards)
	var params string
	if o.text("params", &params) {
		j.Params = strings.Split(params, ",")
	}
	o.count("retry", &j.Retry.Max)
	o.time("backoff", &j.Retry.Backoff)
	o.time("max_backoff", &j.Retry.MaxBackoff)
	o.time("jitter", &j.Jitter)
	for key, into := range map[string]*time.Time{"start_at": &j.StartAt, "end_at": &j.EndAt} {
		if d := o.instant(key); d != nil {
			*into = bubbleBegins.Add(*d)
		}
	}
	o.count("max_runs", &j.MaxRuns)
	o.time("try_timeout", &j.Retry.Timeout)
	o.time("start_within", &j.StartWithin)
	o.time("timeout", &j.Timeout)
	o.time("ttl", &j.TTL)
	if labels := o.labels("labels"); labels != nil {
		j.Labels = labels
	}
	r.last = &actor{job: j}
	v := len(r.s.versions) - 1
	for _, other := range r.s.versions[v] {
		if other.job.Name == j.Name {
			return fmt.Errorf("job %s stands there twice", j.Name)
		}
	}
	r.s.versions[v] = append(r.s.versions[v], r.last)
	return nil
}
