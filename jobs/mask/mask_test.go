package mask

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestURL(t *testing.T) {
	for text, want := range map[string]string{
		"https://hc.example/ping/KEY":          "https://hc.example/***",
		"https://user:KEY@example.org/":        "https://example.org/***",
		"https://KEY@example.org":              "https://example.org/***",
		"http://example.org:8080/?token=KEY":   "http://example.org:8080/***",
		"http://example.org?KEY":               "http://example.org/***",
		"http://example.org/#KEY":              "http://example.org/***",
		"http://example.org":                   "http://example.org",
		"http://[::1]:8080/":                   "http://[::1]:8080/",
		"KEY":                                  Text,
		"http://exa mple.org/KEY":              Text,
		"postgres://KEY:KEY@db.example/app?x=": "postgres://db.example/***",
	} {
		if got := URL(text); got != want || strings.Contains(got, "KEY") {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestArgsAndValues(t *testing.T) {
	words := []string{"curl", "-u", "x:PW"}
	if got := Args(words); !slices.Equal(got, []string{"curl", Text, Text}) || words[2] != "x:PW" {
		t.Errorf("got %v, and the command is %v", got, words)
	}
	if got := Args(nil); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	if got := Values(map[string]string{"A": "b"}); !maps.Equal(got, map[string]string{"A": Text}) || Values(nil) != nil {
		t.Errorf("got %v", got)
	}
}

func TestEcho(t *testing.T) {
	for text, want := range map[string]string{
		"Cannot POST /ping/KEY":         "Cannot POST ***",
		"no such page: /ping/KEY?t=1":   "no such page: ***",
		"the query was t=1":             "the query was ***",
		"nothing of that":               "nothing of that",
		"unknown key PW at /ping/other": "unknown key *** at /ping/other",
	} {
		if got := Echo(text, "https://u:PW@hc.example/ping/KEY?t=1"); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"no hook SECRET-KEY of SECRET-KEY-2":    "no hook *** of ***",
		"token with space is not known":         "*** is not known",
		"token+with+space is not known to bob7": "*** is not known to bob7",
		"the user long-user may not; nor user":  "the user *** may not; nor user",
	} {
		if got := Echo(text, "https://long-user@hc.example/ping/SECRET-KEY/SECRET-KEY-2?t=token+with+space&u=bob7"); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	if got := Echo("a/b", "https://hc.example/"); got != "a/b" {
		t.Errorf("got %s", got)
	}
}
