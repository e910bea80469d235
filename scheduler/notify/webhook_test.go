package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/notify"
)

// message has every character that could break a body.
func message() notify.Message {
	m := notify.Sample("ns", "id-1", time.UnixMilli(1763726400000))
	m.Text = "a \"quoted\" <!channel> & \\ line\nnext {{json}}"
	return m
}

// call sends a message to a webhook and returns the received request.
func call(t *testing.T, w notify.Webhook, m notify.Message) (body string, header http.Header) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		body, header = string(text), r.Header
	}))
	defer server.Close()
	w.URL = server.URL + "/hook"
	target := notify.Target{Name: "t", Webhook: &w}
	if err := target.Validate(); err != nil {
		t.Fatal(err)
	}
	if err := target.Send(context.Background(), m); err != nil {
		t.Fatal(err)
	}
	return body, header
}

func TestBodies(t *testing.T) {
	m := message()
	type object = map[string]any
	for name, c := range map[string]struct {
		hook notify.Webhook
		kind string
		want any // the JSON value of the body, or the body itself
	}{
		"slack": {notify.Webhook{Format: "slack"}, "application/json", object{"text": "a \"quoted\" &lt;!channel&gt; &amp; \\ line\nnext {{json}}"}},
		"text":  {notify.Webhook{Format: "text"}, "text/plain; charset=utf-8", m.Text + "\n"},
		"own": {
			notify.Webhook{Body: `{"a": "{{ text }}", "b": "{{job}} {{event}} {{namespace}} {{key}} {{action}} {{id}}"}`}, "application/json",
			object{"a": m.Text, "b": "sample failed ns ns/sample/failed trigger id-1"},
		},
		"form": {
			notify.Webhook{Body: "text={{text}}&x=1", Headers: map[string]string{"content-type": "application/x-www-form-urlencoded"}},
			"application/x-www-form-urlencoded", "text=a+%22quoted%22+%3C%21channel%3E+%26+%5C+line%0Anext+%7B%7Bjson%7D%7D&x=1",
		},
		"plain": {notify.Webhook{Body: "<{{text}}>", Headers: map[string]string{"Content-Type": "text/plain"}}, "text/plain", "<" + m.Text + ">"},
	} {
		body, header := call(t, c.hook, m)
		if got := header.Get("Content-Type"); got != c.kind {
			t.Errorf("%s: sent as %s", name, got)
		}
		if got := header.Get("Idempotency-Key"); got != "id-1" {
			t.Errorf("%s: the key is %q", name, got)
		}
		got := any(body)
		if _, isText := c.want.(string); !isText {
			got = object{}
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Errorf("%s: %v: %s", name, err, body)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s:\n got %v\nwant %v", name, got, c.want)
		}
	}
}

// TestMessageAsJSON: the default format is the message, and it can be read back.
func TestMessageAsJSON(t *testing.T) {
	body, _ := call(t, notify.Webhook{}, message())
	var back notify.Message
	if err := json.Unmarshal([]byte(body), &back); err != nil {
		t.Fatal(err)
	}
	if want := message(); back.ID != want.ID || back.Text != want.Text || len(back.Events) != 1 || back.Events[0].Key != "ns/sample/failed" ||
		back.Events[0].Kind != notify.Failed || back.Events[0].Since.IsZero() != true {
		t.Errorf("got %+v", back)
	}
	if !strings.Contains(body, `"at":"2025-11-21T12:00:00.000Z"`) || !strings.Contains(body, `"since":null`) {
		t.Error(body)
	}
}

// TestSecretsStay: an error has the host and no other part of the URL, whatever the receiver
// answers; no redirect is followed.
func TestSecretsStay(t *testing.T) {
	var other int
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { other++ }))
	defer elsewhere.Close()
	for name, answer := range map[string]http.HandlerFunc{
		"refuses": func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no "+r.URL.Path, http.StatusForbidden) },
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		},
		"redirects badly": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://%zz/"+r.URL.Path)
			w.WriteHeader(http.StatusFound)
		},
		"hangs up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		server := httptest.NewServer(answer)
		host := strings.TrimPrefix(server.URL, "http://")
		target := notify.Target{Name: "t", Webhook: &notify.Webhook{
			URL: "http://hunter2:hunter2@" + host + "/hunter2?key=hunter2", Headers: map[string]string{"X-Key": "hunter2"},
		}}
		err := target.Send(context.Background(), message())
		server.Close()
		if err == nil || !strings.Contains(err.Error(), host) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
		if err = target.Send(context.Background(), message()); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: nobody is there: %v", name, err)
		}
	}
	if other != 0 {
		t.Error("a redirect was followed")
	}
}

func TestCommand(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	t.Setenv("ESCAPEMENT_REDIS_URL", "redis://:hunter2@localhost")
	m := message()
	tell := func(script string) error {
		return notify.Target{Name: "t", Command: []string{"sh", "-c", script, "sh", out}}.Send(context.Background(), m)
	}
	if err := tell(`{ cat; echo "$NOTIFY_ID $NOTIFY_NAMESPACE"; echo "$NOTIFY_TEXT"; env | grep ESCAPEMENT_REDIS; } > "$1"; true`); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(text), "\n")
	var back notify.Message
	if err := json.Unmarshal([]byte(first), &back); err != nil || back.Text != m.Text {
		t.Errorf("%v: %s", err, first)
	}
	if rest != "id-1 ns\n"+m.Text+"\n" {
		t.Errorf("variables:\n%s", rest)
	}
	if err := tell("echo broken >&2; exit 3"); err == nil || !strings.Contains(err.Error(), "exit status 3: broken") {
		t.Error(err)
	}
	// The command has succeeded, whatever holds its output open.
	if err := tell(`sleep 600 & echo $! > "$1"; exit 0`); err != nil {
		t.Error(err)
	}
	if text, err = os.ReadFile(out); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("kill", strings.TrimSpace(string(text))).Run(); err != nil {
		t.Errorf("what the command has left: %v", err)
	}
	if err := tell(`sleep 600 & echo $! > "$1"; exit 3`); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Error(err)
	}
	if text, err = os.ReadFile(out); err != nil {
		t.Fatal(err)
	}
	_ = exec.Command("kill", strings.TrimSpace(string(text))).Run()
	ctx, cancel := context.WithTimeoutCause(context.Background(), 100*time.Millisecond, errors.New("enough"))
	defer cancel()
	err = notify.Target{Name: "t", Command: []string{"sh", "-c", "trap '' TERM; sleep 60"}}.Send(ctx, m)
	if err == nil || !strings.Contains(err.Error(), "enough") {
		t.Error(err)
	}
}

func TestValidate(t *testing.T) {
	good := notify.Target{Name: "t", Command: []string{"true"}}
	hook := func(w notify.Webhook) notify.Config {
		return notify.Config{Targets: []notify.Target{{Name: "t", Webhook: &w}}}
	}
	for words, cfg := range map[string]notify.Config{
		"targets: 0 targets are outside 1 to 32":                         {},
		"targets[1].name: \"t\" is the name of another target already":   {Targets: []notify.Target{good, good}},
		"every: 10ms is outside 1s to 1h0m0s":                            {Every: 10 * time.Millisecond, Targets: []notify.Target{good}},
		"targets[0].webhook.url: it is no URL":                           hook(notify.Webhook{URL: "ftp://a/b"}),
		"targets[0].webhook.body: format is given too":                   hook(notify.Webhook{URL: "http://a", Format: "json", Body: "{}"}),
		"targets[0].webhook.headers: \"Token...\" is no name":            hook(notify.Webhook{URL: "http://a", Headers: map[string]string{"Token hunter2": ""}}),
		"targets[0].webhook.headers.X: its value has a control":          hook(notify.Webhook{URL: "http://a", Headers: map[string]string{"X": "a\nb"}}),
		"targets[0].webhook.body: {{x}} is not known; use some of {{te":  hook(notify.Webhook{URL: "http://a", Body: `{"a": "{{x}}"}`}),
		"targets[0].webhook.body: it is no JSON with its {{...}} replac": hook(notify.Webhook{URL: "http://a", Body: `{"a": {{text}}}`}),
	} {
		err := cfg.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), words) || !errors.As(err, new(*jobs.FieldError)) {
			t.Errorf("got %v, want %s", err, words)
		}
	}
	if err := (notify.Config{Targets: []notify.Target{good}, GroupFor: -1}).Validate(); err != nil {
		t.Error(err)
	}
}
