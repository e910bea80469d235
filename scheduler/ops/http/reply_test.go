package opshttp

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ops"
)

// garbage is a record that no version can read, in every kind of record that lists are made of.
func (w *world) garbage() {
	w.t.Helper()
	ctx := w.t.Context()
	const bad = "99|x|y"
	for _, err := range []error{
		w.raw.HSet(ctx, "{escapement:0}:jobs", "long", bad).Err(),
		w.raw.HSet(ctx, "{escapement:0}:runs", "odd", bad).Err(),
		w.raw.HSet(ctx, "{escapement:0}:waiting", "odder", bad).Err(),
		w.raw.HSet(ctx, "{escapement:0}:backfills", "long", bad).Err(),
		w.raw.HSet(ctx, "{escapement:0}:backfilled", "longer", bad).Err(),
		w.raw.HSet(ctx, "{escapement:0}:pauses", "slow", bad).Err(),
		w.raw.HSet(ctx, "{escapement:0}:cancels", "odd", bad).Err(),
		w.raw.LPush(ctx, "{escapement:0}:history:fails/often", bad).Err(),
		w.raw.RPush(ctx, "{escapement:0}:recent", bad).Err(),
		w.raw.HSet(ctx, "{escapement}:roster", "stranger", bad).Err(),
		w.raw.HSet(ctx, "{escapement}:drains", "stranger", bad).Err(),
		w.raw.RPush(ctx, "{escapement}:audit", bad).Err(),
		w.raw.HSet(ctx, "{escapement}:catalog", "mailed", bad).Err(),
		w.raw.ZAdd(ctx, "{escapement}:catalogat", redis.Z{Score: 1, Member: "mailed"}).Err(),
		w.raw.ZAdd(ctx, "{escapement}:seen", redis.Z{Score: 1e13, Member: "stranger"}).Err(),
		w.raw.HSet(ctx, "{escapement:lock:odd}", "x", bad).Err(),
	} {
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// A list with a record that cannot be read is the rest of the list and a note, over HTTP and for
// the client alike.
func TestListsWithGarbage(t *testing.T) {
	w := begin(t, Config{})
	lease, err := w.locker.Acquire(t.Context(), "mine", locking.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lease.Release(context.Background()) }()
	remote, err := NewClient(w.http.URL, ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.PutJob(t.Context(), jobs.Job{Name: "stored", Handler: "mail", Schedule: "@yearly"}, ops.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.client.As(ops.Actor{Name: "ann"}).Pause(t.Context(), "shards", ops.PauseOptions{Reason: "x"}); err != nil {
		t.Fatal(err)
	}
	w.eventually("a run has ended", func() bool {
		l, err := w.client.ListRuns(t.Context(), ops.RunFilter{Job: "each-second", Outcome: jobs.OutcomeSucceeded.String()})
		return err == nil && len(l.Items) > 0
	})
	w.garbage()
	for path, want := range map[string]string{
		"jobs": `"name":"each-second"`, "job-names": `"each-second"`, "graph": `"name":"follows"`, "stored-jobs": `"name":"stored"`, "handlers": `"name":"mail"`,
		"backfills": "[]", "runs": `"job":"each-second"`, "nodes": `"name":"a1"`, "drains": "{", "locks": `"name":"mine"`, "generations": `"name":""`,
		"problems": `"node_unreadable"`, "audit": `"who":"ann"`, "overview": `"jobs":`, "ends?job=each-second&job=fails/often": `"each-second":[{`,
	} {
		status, body, header := w.ask(http.MethodGet, Prefix+path, "")
		if status != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d %.300s; want %s", path, status, body, want)
		}
		noted := path == "jobs" || path == "graph" || path == "stored-jobs" || path == "backfills" || path == "nodes" || path == "audit"
		if lacks := header.Get(IncompleteHeader); noted && (!strings.Contains(lacks, "understand") || header.Get(UnreadableHeader) == "") {
			t.Errorf("%s: notes %q, %s", path, lacks, header.Get(UnreadableHeader))
		}
	}
	list, err := remote.ListJobs(t.Context(), ops.JobFilter{})
	if len(list.Items) < 5 || !errors.Is(err, ops.ErrUnknownFormat) || errors.Is(err, locking.ErrUnreachable) || !strings.Contains(err.Error(), "long") {
		t.Errorf("%d jobs, %v", len(list.Items), err)
	}
	if status, body, _ := w.ask(http.MethodGet, Prefix+"jobs/long", ""); status != http.StatusUnprocessableEntity {
		t.Errorf("the job itself: %d %s", status, body)
	}
}

// A list's missing parts are noted in headers; any other error is returned.
func TestNoteLacks(t *testing.T) {
	unread := func(n int) error { return fmt.Errorf("job %d: %w", n, ops.ErrUnknownFormat) }
	part := &ops.UnreachableError{Parts: []int{1, 2}, Err: locking.ErrUnreachable}
	var many []error
	for n := range 200 {
		many = append(many, unread(n))
	}
	for name, c := range map[string]struct {
		err    error
		number string
		fails  bool
	}{
		"nothing":        {nil, "", false},
		"a partition":    {part, "", false},
		"a record":       {unread(1), "1", false},
		"both":           {errors.Join(part, unread(1), unread(2)), "2", false},
		"many":           {errors.Join(many...), "200", false},
		"something else": {errors.Join(unread(1), io.ErrUnexpectedEOF), "", true},
	} {
		h := http.Header{}
		if err := noteLacks(h, c.err); (err != nil) != c.fails || h.Get(UnreadableHeader) != c.number || len(h.Get(IncompleteHeader)) > 1000 {
			t.Errorf("%s: %v, %v", name, err, h)
		}
		if left := unescaped(h.Get(IncompleteHeader)); left != "" {
			back := lacksOf(left, c.number != "")
			if errors.Is(back, ops.ErrUnknownFormat) != (c.number != "") || errors.As(back, new(*ops.UnreachableError)) != errors.As(c.err, new(*ops.UnreachableError)) {
				t.Errorf("%s came back as %v", name, back)
			}
		}
	}
}

// How an answer is sent: HEAD as GET, compressed where the caller takes that, and not at all when
// the caller has it.
func TestHowAnswersAreSent(t *testing.T) {
	s := New(new(ops.Client), Config{})
	send := func(method, path, body string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(context.Background(), method, "http://localhost"+Prefix+path, strings.NewReader(body))
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	plain := send(http.MethodGet, "openapi.json", "")
	tag := plain.Header().Get("ETag")
	if head := send(http.MethodHead, "openapi.json", ""); head.Code != http.StatusOK || tag == "" || head.Header().Get("ETag") != tag {
		t.Errorf("HEAD: %d %v, and GET has the tag %s", head.Code, head.Header(), tag)
	}
	packed := send(http.MethodGet, "openapi.json", "", "Accept-Encoding", "gzip")
	in, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	if whole, err := io.ReadAll(in); err != nil || !bytes.Equal(whole, plain.Body.Bytes()) || packed.Header().Get("Vary") != "Accept-Encoding" {
		t.Errorf("gzip: %v, %d bytes of %d", err, len(whole), plain.Body.Len())
	}
	for _, has := range []string{tag, strings.TrimPrefix(tag, "W/"), `"other", ` + tag} {
		if same := send(http.MethodGet, "openapi.json", "", "If-None-Match", has); same.Code != http.StatusNotModified || same.Body.Len() > 0 {
			t.Errorf("If-None-Match %s: %d", has, same.Code)
		}
	}
	if small := send(http.MethodGet, "me", "", "Accept-Encoding", "gzip"); small.Header().Get("Content-Encoding") != "" || !json.Valid(small.Body.Bytes()) {
		t.Errorf("a small answer: %v", small.Header())
	}
	if bad := send(http.MethodPost, "jobs/a/pause", `{"reason":"x"}`, "Content-Type", "text/plain"); bad.Code != http.StatusUnsupportedMediaType || !strings.Contains(bad.Body.String(), "curl sends JSON with --json") {
		t.Errorf("text/plain: %d %s", bad.Code, bad.Body)
	}
	if bad := send(http.MethodGet, "nothing", ""); bad.Code != http.StatusNotFound || strings.Contains(bad.Body.String(), "StripPrefix") {
		t.Errorf("a path that is not there: %s", bad.Body)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "http://localhost/jobs", nil))
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "the API's paths begin with /api/v1/, and the request's is /jobs: mount the handler") {
		t.Errorf("mounted behind StripPrefix: %d %s", w.Code, w.Body)
	}
}

// Every answer of 503 has a Retry-After.
func TestRetryAfter(t *testing.T) {
	for status, want := range map[int]bool{http.StatusServiceUnavailable: true, http.StatusTooManyRequests: true, http.StatusNotFound: false} {
		w := httptest.NewRecorder()
		writeProblem(w, problem{Status: status})
		if (w.Header().Get("Retry-After") != "") != want {
			t.Errorf("%d: %v", status, w.Header())
		}
	}
}

// A value that is no duration is refused, in every setting that is one.
func TestNumbersThatDoNotFit(t *testing.T) {
	w := begin(t, Config{})
	for _, s := range spec.All() {
		if s.Kind != spec.Duration {
			continue
		}
		for _, value := range []string{"288230376151712744", `"288230376151712744ms"`, `"9223372036854775808ns"`, `"-3s"`, `"9223372036855s"`, `"106752d"`} {
			setting := fmt.Sprintf("%q: %s", s.Key(), value)
			if s.Section() != "" {
				setting = fmt.Sprintf("%q: {%s}", s.Section(), setting)
			}
			body := fmt.Sprintf(`{"handler": "mail", "schedule": "@daily", %s}`, setting)
			if status, answer, _ := w.ask(http.MethodPut, Prefix+"jobs/big", body, "Content-Type", "application/json"); status != 422 || !strings.Contains(string(answer), `"field":"`+s.Name+`"`) {
				t.Errorf("%s: %d %s", body, status, answer)
			}
		}
	}
}

// A list that was read in several pages names the partitions that it lacks once, and each record.
func TestPagesLackOnce(t *testing.T) {
	page := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if page++; page < 3 {
			w.Header().Set(NextHeader, fmt.Sprint(page))
			w.Header().Set(UnreadableHeader, "1")
		}
		w.Header().Set(IncompleteHeader, "2 partitions left out")
		_, _ = io.WriteString(w, `[{"name":"a"}]`)
	}))
	defer server.Close()
	c, err := NewClient(server.URL, ClientConfig{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.ListLocks(t.Context(), ops.LockFilter{})
	parts, unreadable, other := ops.Incomplete(err)
	if len(list.Items) != 3 || len(parts) != 1 || len(unreadable) != 2 || other != nil {
		t.Errorf("%v: %d and %d, %v", list, len(parts), len(unreadable), other)
	}
}

// An answer that no node gives is named so, with the address, and without Go's names.
func TestStranger(t *testing.T) {
	for name, answer := range map[string]struct {
		code int
		text string
	}{
		"another type": {http.StatusOK, "{}"}, "a page": {http.StatusOK, "<html>"}, "nothing": {http.StatusOK, ""}, "not found": {http.StatusNotFound, "no"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(answer.code)
			_, _ = w.Write([]byte(answer.text))
		}))
		t.Cleanup(server.Close)
		client, err := NewClient(server.URL, ClientConfig{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.ListJobs(t.Context(), ops.JobFilter{})
		if err == nil || !strings.Contains(err.Error(), "what answers at "+server.URL) || !strings.Contains(err.Error(), "is no Escapement node") || strings.Contains(err.Error(), "json") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
