package cli

import (
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/jobs"
)

// An error for a missing right in Redis names the right.
func TestLackingRights(t *testing.T) {
	t.Parallel()
	p := cmdtest.Plant(t, jobs.Job{Name: "yearly", Schedule: "@yearly"})
	env := []string{strings.Replace(p.Env[0], "redis://", "redis://u:p@", 1)}
	for rules, words := range map[string]string{
		"~other:* +@all":                 "lacks the keys ~{escapement}:* ~{escapement:*",
		"~* +@all -hgetall":              "lacks the command hgetall (+hgetall)",
		"~* +evalsha +eval +@read +time": "lacks a command that our scripts call",
	} {
		args := []any{"acl", "setuser", "u", "reset", "on", ">p", "&*"}
		for _, rule := range strings.Fields(rules) {
			args = append(args, rule)
		}
		if err := p.Client.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
		line := []string{"jobs", "list"}
		if strings.Contains(words, "scripts") {
			line = []string{"jobs", "run", "yearly"}
		}
		if code, _, said := cmdtest.Call(env, "", line...); code != command.ExitFailed || !strings.Contains(said, words) {
			t.Errorf("%s: exit %d, %s", rules, code, said)
		}
	}
}
