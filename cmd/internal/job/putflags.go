package job

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
)

// putFlags adds a flag for each setting of a stored job. It has the setting's name in config.yaml
// with dashes: max_runs is --max-runs, and retry.max is --retry-max. The name is the argument;
// boundFlags adds the flags of instants, and jobs put the flag of the payload.
func putFlags(cmd *cobra.Command, j *jobs.Job) {
	for _, s := range spec.All() {
		if s.Name != "name" && s.Kind != spec.Instant && s.Kind != spec.JSON {
			cmd.Flags().Var(&settingFlag{Setting: s, job: j}, s.Flag(), flagUsage(s))
		}
	}
}

// settingFlag is the flag of a setting.
type settingFlag struct {
	spec.Setting
	job  *jobs.Job
	text string
	list spec.Node // the flag's values so far, of a setting with several
}

// oneEach reports whether the flag of a list takes one element each time: --param for params. Other
// flags take them with commas.
func oneEach(s spec.Setting) bool { return s.Flag()+"s" == s.Name }

// Set sets the setting of the job. A flag of a list or of labels may come several times.
func (f *settingFlag) Set(text string) error {
	f.text = text
	switch f.Kind {
	case spec.Texts, spec.Names:
		items := config.SplitComma(text)
		if oneEach(f.Setting) {
			items = []string{text}
		}
		f.list.Kind = spec.NodeList
		for _, item := range items {
			f.list.Items = append(f.list.Items, &spec.Node{Kind: spec.NodeText, Text: item})
		}
		return f.decode()
	case spec.Labels:
		f.list.Kind = spec.NodeMap
		for _, pair := range config.SplitComma(text) {
			key, value, is := strings.Cut(pair, "=")
			if !is || key == "" {
				return fmt.Errorf("%s is not KEY=VALUE", print.Quote(pair))
			}
			f.list.Keys, f.list.Items = append(f.list.Keys, &spec.Node{Kind: spec.NodeText, Text: key}), append(f.list.Items, &spec.Node{Kind: spec.NodeText, Text: value})
		}
		return f.decode()
	case spec.Duration:
		if d, err := spec.ParseDuration(text); err == nil && d%time.Millisecond != 0 {
			return fmt.Errorf("%s is no whole number of milliseconds", spec.Clip(text))
		}
	default:
	}
	return jobs.Settings.Set(f.job, f.Setting, text)
}

// decode sets a setting with several values that is in no section.
func (f *settingFlag) decode() error {
	doc := &spec.Node{Kind: spec.NodeMap, Keys: []*spec.Node{{Kind: spec.NodeText, Text: f.Name}}, Items: []*spec.Node{&f.list}}
	for _, bad := range jobs.Settings.Decode(doc, f.job, nil).Faults {
		return fmt.Errorf("%s", bad.Msg)
	}
	return nil
}

// String returns the text that was given last.
func (f *settingFlag) String() string { return f.text }

// Type returns the kind of the flag's value, for the help.
func (f *settingFlag) Type() string {
	switch f.Kind {
	case spec.Name:
		return "name"
	case spec.Word:
		return "word"
	case spec.Count:
		return "number"
	case spec.Duration:
		return "duration"
	case spec.Names:
		return "names"
	case spec.Labels:
		return "KEY=VALUE"
	case spec.Texts:
		if !oneEach(f.Setting) {
			return "days"
		}
	default:
	}
	return "text"
}

// flagUsage is the help of a setting's flag.
func flagUsage(s spec.Setting) string {
	usage := s.Sentence
	switch {
	case s.Kind == spec.Word:
		usage += ": " + strings.Join(s.Words, ", ")
	case s.Kind == spec.Labels, oneEach(s):
		usage += "; may be given several times"
	case s.Kind == spec.Names:
		usage += ", with commas"
	case s.Kind == spec.Texts:
		usage = strings.Replace(usage, "dates, ranges of dates, and calendars of config.yaml", "2026-12-24, or 2026-12-24..2027-01-02", 1) + ", with commas; no calendars"
	}
	if bounds := s.Bounds(); bounds != "" {
		usage += "; " + bounds
	}
	if s.With != "" {
		usage += "; only with " + s.With
	}
	if s.Default != "" {
		usage += "; default " + s.Default
	}
	return usage
}

// boundFlags adds the flags of the first and the last instant of a job's ticks. resolve puts their
// values into j, by Redis' clock.
func boundFlags(cmd *cobra.Command, j *jobs.Job) (resolve func(t command.Tool) error) {
	start := command.AddTimeFlag(cmd, "start-at", command.FromNow, "no tick before `T`")
	end := command.AddTimeFlag(cmd, "end-at", command.FromNow, "no tick after `T`")
	return func(t command.Tool) error {
		for into, f := range map[*time.Time]*command.TimeFlag{&j.StartAt: start, &j.EndAt: end} {
			at, err := t.Instant(f)
			if err != nil {
				return err
			}
			if !at.IsZero() {
				*into = at.UTC()
			}
		}
		return nil
	}
}
