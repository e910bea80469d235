package tool

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/cron"
	"github.com/escapement/escapement/jobs/spec"
)

const (
	maxExplained = 1000 // ticks of one explanation
	exampleJob   = "example"
)

// explainOptions are the flags of cron explain.
type explainOptions struct {
	zone, from, job string
	n               int
}

// Cron makes the commands cron.
func Cron(a *command.App) *cobra.Command {
	var o explainOptions
	explain := a.Command("explain EXPR [--tz ZONE] [--from T] [-n 10] [--job NAME]", "say what a schedule means, and its next ticks", wantsExpression,
		func(_ *cobra.Command, args []string) error {
			x, err := explainSchedule(args[0], o, time.Now())
			if err != nil {
				return command.WithCode(command.ExitUsage, err)
			}
			return printExplanation(a, x)
		})
	explain.Long = `Reads EXPR as the schedule of a job, and prints what it means and when the ticks
are, from T on. EXPR stands in quotes: "*/5 * * * *". A tick for which the clock
was set carries a note. Neither Redis nor a configuration is looked at.

` + command.TimeForms
	explain.Example = `escapement cron explain "*/5 9-17 * * MON-FRI"
escapement cron explain "30 2 * * *" --tz Europe/Berlin --from 2026-03-28 -n 3
escapement cron explain "H 3 * * *" --job settle-orders`
	explain.Flags().StringVar(&o.zone, "tz", "", "the time `zone`, such as Europe/Berlin (default UTC)")
	explain.Flags().StringVar(&o.from, "from", "", "where to begin, `T`; default now")
	explain.Flags().IntVarP(&o.n, "ticks", "n", 10, "how many ticks")
	explain.Flags().StringVar(&o.job, "job", "", "the job's `name`, which decides what H stands for")
	return a.Group("cron COMMAND", "explain schedules", explain)
}

// wantsExpression refuses an expression without quotes; the shell may then have put file names in
// the place of the stars.
func wantsExpression(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("EXPR is one argument; put it in quotes: escapement cron explain %s", print.Quote("*/5 * * * *"))
	}
	return command.Wants("EXPR")(cmd, args)
}

// explanation is the output of cron explain, and its JSON.
type explanation struct {
	Schedule   string          `json:"schedule"`
	Resolved   string          `json:"resolved"`      // without H
	Job        string          `json:"job,omitempty"` // the name that H is computed from; only with H
	Words      string          `json:"words"`
	TimeZone   string          `json:"time_zone"`
	FixedTimes bool            `json:"fixed_times"`       // and not an interval
	Crontab    string          `json:"crontab,omitempty"` // how crontab(5) reads it, where that gives other days
	From       time.Time       `json:"from"`
	Ticks      []explainedTick `json:"ticks"`

	assumed bool   // Job was not given
	clock   string // the effect of a change of the clock on the ticks
}

type explainedTick struct {
	Tick  time.Time `json:"tick"`
	Local string    `json:"local"`
	Note  string    `json:"note"` // "", gap or fold

	local time.Time
	words string
}

func explainSchedule(expr string, o explainOptions, now time.Time) (*explanation, error) {
	if o.n < 1 || o.n > maxExplained {
		return nil, fmt.Errorf("-n %d is outside 1 to %d", o.n, maxExplained)
	}
	name := o.job
	if name == "" {
		name = exampleJob
	}
	for _, f := range config.FieldErrors(jobs.Job{Name: name}.Validate()) {
		if f.Field == "name" {
			return nil, fmt.Errorf("--job: %s", f.Msg)
		}
	}
	if _, err := command.ParseZone(o.zone); err != nil {
		return nil, err
	}
	s, err := cron.ParseFor(name, expr, o.zone)
	if err != nil && o.zone != "" {
		if _, alone := cron.ParseFor(name, expr, ""); alone == nil {
			return nil, fmt.Errorf("EXPR names a zone and --tz names %s; keep one of the two", o.zone)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := s.CheckSteps(); err != nil {
		return nil, err
	}
	w, err := command.ParseWhen("--from", o.from, s.Zone(), command.FromNow)
	if err != nil {
		return nil, err
	}
	from := now
	if o.from != "" {
		from = w.Resolve(now)
	}
	x := &explanation{
		Schedule: s.String(), Resolved: s.Resolved(), Words: s.Words(), TimeZone: s.Zone().String(), FixedTimes: s.FixedTimes(),
		Crontab: s.CrontabWords(), From: from, Ticks: []explainedTick{}, clock: s.ClockWords(),
	}
	if x.Resolved != x.Schedule {
		x.Job, x.assumed = name, o.job == ""
	}
	for _, tick := range s.Between(from, time.Unix(1<<60, 0), o.n) {
		local := tick.In(s.Zone())
		x.Ticks = append(x.Ticks, explainedTick{tick, local.Format(spec.TimeLayout), s.Note(tick), local, s.NoteWords(tick)})
	}
	return x, nil
}

func printExplanation(a *command.App, x *explanation) error {
	if a.JSON() {
		return print.JSON(a.Stdout, x)
	}
	rows := []string{"schedule", x.Schedule}
	switch {
	case x.assumed:
		rows = append(rows, "resolved", x.Resolved+"   for a job named "+x.Job+"; name yours with --job")
	case x.Job != "":
		rows = append(rows, "resolved", x.Resolved+"   for the job "+x.Job)
	}
	rows = append(rows, "words", x.Words)
	if x.Crontab != "" {
		rows = append(rows, "crontab", x.Crontab)
	}
	if x.clock != "" {
		rows = append(rows, "clock set", x.clock)
	}
	if err := print.Pairs(a.Stdout, rows...); err != nil {
		return err
	}
	if len(x.Ticks) == 0 {
		a.Report("there is no tick from then on, up to the end of the year 9999")
		return nil
	}
	fmt.Fprintln(a.Stdout)
	out := a.NewTable(print.Whole("LOCAL"), print.Whole("OFFSET"), print.Wide("UTC"), print.Col("NOTE"))
	for _, t := range x.Ticks {
		out.Row(t.local.Format("Mon 2006-01-02 15:04:05.999"), t.local.Format("-07:00"), print.Stamp(t.Tick), t.words)
	}
	return out.Flush()
}
