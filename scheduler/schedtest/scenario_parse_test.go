package schedtest

import (
	"os"
	"strings"
	"testing"
)

// The scenarios distinguish the policies: a scenario played with another policy gives another
// history. So does a scenario with a tampered history.
func TestScenariosCanFail(t *testing.T) {
	for name, c := range map[string]struct{ file, old, new string }{
		"skip for queue":      {"overlap/queue_slow_run", " overlap=queue", ""},
		"none for latest":     {"catchup/latest", `"@every 30s"`, `"@every 30s" catch_up=none`},
		"record for rerun":    {"crash/rerun", " on_crash=rerun", ""},
		"no start_within":     {"start_within/eager_and_patient", " start_within=5s", ""},
		"no retry":            {"retry/succeeds_at_last", " retry=5 backoff=100ms", ""},
		"no timeout":          {"timeout/ends_the_run", " timeout=5s", ""},
		"no pause":            {"pause/until", "at 15s pause", "# at 15s pause"},
		"follows nobody":      {"after/success", "after=extract", `"@every 10s"`},
		"no shards":           {"shards/rerun_shard", " shards=4", ""},
		"another span":        {"overlap/skip_slow_run", "ran 24s", "ran 25s"},
		"lines the wrong way": {"triggers/now", "tidy +10s succeeded\ntidy +14s succeeded by manual\n", "tidy +14s succeeded by manual\ntidy +10s succeeded\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := scenarios + "/" + c.file + ".txt"
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(text), c.old) == 0 {
				t.Fatalf("%s has no %q", file, c.old)
			}
			s, err := parseScenario(file, strings.Replace(string(text), c.old, c.new, 1))
			if err != nil {
				t.Fatal(err)
			}
			if diff(s.want, s.play(t).got, s.wantAt, file) == "" {
				t.Error("it came out as if nothing had been changed")
			}
		})
	}
}

// The comparison ignores only spacing and empty lines.
func TestDiff(t *testing.T) {
	want := []string{"a +10s succeeded", "", "a   next +20s"}
	if d := diff(want, []string{"a  +10s  succeeded", "a next +20s"}, 1, "x"); d != "" {
		t.Errorf("spacing makes a difference:\n%s", d)
	}
	for _, got := range [][]string{nil, {"a +10s succeeded"}, {"a next +20s", "a +10s succeeded"}, {"a +10s failed", "a next +20s"}, {"a +10s succeeded", "a +10s succeeded", "a next +20s"}} {
		if d := diff(want, got, 7, "x.txt"); !strings.Contains(d, "x.txt:7") || !strings.Contains(d, "\n- ") && !strings.Contains(d, "\n+ ") {
			t.Errorf("%q: %q", got, d)
		}
	}
}

// A malformed scenario is refused, each fault with file and line.
func TestMalformedScenarios(t *testing.T) {
	const good = "# It runs.\njob tick \"@every 10s\"\n"
	for text, want := range map[string]string{
		good + "frobnicate\n---\n":                                 `x.txt:3: there is no word "frobnicate"`,
		good + "for ever\n---\n":                                   `x.txt:3: ever: not a time`,
		good + "for 10s 20s\n---\n":                                `x.txt:3: "20s" does not belong there`,
		good:                                                       "x.txt:3: there is no line ---",
		"job tick \"@every 10s\"\n---\n":                           "x.txt:1: the first line must say what the scenario shows",
		"# It runs.\n  run 3s\n---\n":                              "x.txt:2: an indented line",
		good + "  sing\n---\n":                                     "x.txt:3: \"sing\": a function can",
		good + "  run\n---\n":                                      "x.txt:3: run: how long?",
		good + "  moon 3: run 3s\n---\n":                           `x.txt:3: "moon 3" selects no runs`,
		good + "  try: run 3s\n---\n":                              "x.txt:3: \"try\": try needs a value",
		good + "  fail \"oops\n---\n":                              "x.txt:3: a quotation mark is missing",
		good + "job tick \"@every 10s\"\n---\n":                    "x.txt:3: job tick stands there twice",
		good + "job tock \"@every 10s\" overlap=maybe\n---\n":      "x.txt:3: overlap \"maybe\"",
		good + "job tock \"@every 10s\" catch_up_max=many\n---\n":  "x.txt:3: catch_up_max=many: not a number",
		good + "job tock \"@every 10s\" colour=red\n---\n":         "x.txt:3: \"colour=red\" does not belong there",
		good + "job tock\n---\n":                                   "x.txt:3: a schedule is missing",
		good + "version 2\n---\n":                                  "x.txt:3: version 2: the next one is 1",
		good + "at 3s dance a\n---\n":                              "x.txt:3: \"dance\" cannot be done",
		good + "at 3s pause tock \"why\"\n---\n":                   "x.txt:3: there is no job \"tock\"; the jobs are tick",
		good + "at 3s pause tick\n---\n":                           "x.txt:3: a reason is missing",
		good + "at 3s cancel tick \"why\"\n---\n":                  "x.txt:3: cancel needs run=ID or tick=+10s",
		good + "at 3s rewind tick\n---\n":                          "x.txt:3: rewind needs to=+10s",
		good + "at 2h trigger tick\n---\n":                         "x.txt:3: at 2h0m0s: the scenario is over at 30s",
		good + "at 3s crash z\n---\n":                              "there is no node \"z\"",
		good + "when after-lunch crash\n---\n":                     "there is no point \"after lunch\"",
		good + "when after-start explode\n---\n":                   "x.txt:3: there is no fault \"explode\"",
		good + "show me\n---\n":                                    "x.txt:3: show \"me\"",
		good + "zone Moon/Crater\n---\n":                           "x.txt:3: unknown time zone Moon/Crater",
		"# It runs.\njob tick \"@every 10s\" retry=-1\n---\n":      "retry.max",
		"# It runs.\njob tick after=nobody\n---\n":                 "nobody",
		good + "for 10s\nnodes many\nat 99\nfrobnicate now\n---\n": "x.txt:6: ",
	} {
		if _, err := parseScenario("x.txt", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\ndoes not say %q", text, err, want)
		}
	}
}
