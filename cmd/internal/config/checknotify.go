package config

import (
	"cmp"
	"maps"
	"regexp"
	"strings"
	"time"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/scheduler/notify"
)

// notify judges the targets of notifications, and makes the library's form of them.
func (c *checker) notify() {
	n := c.Notify
	cfg := notify.Config{
		Namespace: c.Namespace, Every: n.Every, GroupFor: cmp.Or(n.GroupFor, -1), LateAfter: n.LateAfter, AtMost: n.AtMost,
	}
	c.span("notify.every", n.Every, time.Second, time.Hour)
	c.span("notify.group_for", n.GroupFor, 0, time.Hour)
	c.span("notify.late_after", n.LateAfter, 10*time.Second, 24*time.Hour)
	c.whole("notify.at_most", n.AtMost, 1, 1000)
	first := map[string]string{}
	for i, entry := range n.Targets {
		path := "notify.targets[" + c.targetLabels[i] + "]"
		if c.faults.has(path) || c.faults.has(path+".webhook") {
			continue
		}
		t := c.target(path, entry)
		for _, f := range FieldErrors(t.Validate()) {
			c.fault(strings.TrimSuffix(path+"."+f.Field, "."), "%s", f.Msg)
		}
		if at, twice := first[t.Name]; twice && t.Name != "" {
			c.fault(path+".name", "%s is the name of the target at line %d already; give one of them another name", print.Quote(t.Name), c.From.Of(at).Line)
		} else {
			first[t.Name] = path + ".name"
		}
		cfg.Targets = append(cfg.Targets, t)
	}
	if most := notify.TargetsMost; len(n.Targets) > most {
		c.fault("notify.targets", "%d targets are more than %d", len(n.Targets), most)
	}
	c.Loaded.NotifyConfig = cfg
}

// target is the library's form of a target.
func (c *checker) target(path string, e Target) notify.Target {
	t := notify.Target{Name: e.Name, Jobs: e.Jobs, Each: e.Messages == "each", Command: e.Command}
	for _, word := range e.On {
		t.On = append(t.On, notify.Kind(word))
	}
	if e.Webhook == nil {
		return t
	}
	fill := c.secret(path+".webhook", *e.Webhook)
	w := notify.Webhook{URL: fill(e.Webhook.URL), Format: e.Webhook.Format, Body: fill(e.Webhook.Body), Headers: maps.Clone(e.Webhook.Headers)}
	for name, value := range w.Headers {
		w.Headers[name] = fill(value)
	}
	t.Webhook = &w
	return t
}

// secretMark is where the text of webhook.secret_file goes.
var secretMark = regexp.MustCompile(`\{\{\s*secret\s*\}\}`)

// secret returns how to put the text of a webhook's secret_file in its place.
func (c *checker) secret(path string, w Webhook) (fill func(string) string) {
	wanted := secretMark.MatchString(w.URL + w.Body + strings.Join(values(w.Headers), " "))
	text := "secret" // for the rest of the checks
	switch {
	case w.SecretFile == "" && wanted:
		c.fault(path+".secret_file", "is missing, and {{secret}} stands for its text; name the file")
	case w.SecretFile == "":
	case !wanted:
		c.fault(path+".secret_file", "is used nowhere; write {{secret}} in url, headers or body where its text belongs")
	default:
		data, err := readLimited(w.SecretFile, maxSecret)
		if err != nil {
			c.fault(path+".secret_file", "%s: %v", w.SecretFile, err)
			text = "http://unread"
			break
		}
		text = strings.TrimRight(string(data), "\r\n")
	}
	return func(in string) string { return secretMark.ReplaceAllLiteralString(in, text) }
}

func values(m map[string]string) (list []string) {
	for _, v := range m {
		list = append(list, v)
	}
	return list
}

// TargetNames returns the names of the targets, for messages.
func TargetNames(targets []notify.Target) []string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.Name
	}
	return names
}
