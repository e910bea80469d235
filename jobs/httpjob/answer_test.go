package httpjob

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/escapement/escapement/jobs"
)

func TestLargeBodyKeepsItsEnd(t *testing.T) {
	var all bytes.Buffer
	for i := range 50_000 {
		fmt.Fprintf(&all, "line %d\n", i)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write(all.Bytes())
	}))
	defer server.Close()
	f, err := New(Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	run := jobs.NewRun(jobs.RunInfo{})
	err = f(t.Context(), run)
	if err == nil || !strings.HasSuffix(err.Error(), ": 500 Internal Server Error: line 0") {
		t.Errorf("error %v", err)
	}
	if out := run.Output(); !bytes.Equal(out, all.Bytes()[all.Len()-jobs.MaxOutput:]) {
		t.Errorf("%d bytes are kept, ending in %q", len(out), out[max(0, len(out)-30):])
	}
}

// A body without end is read up to the bound, and the call succeeds: its status says so.
func TestEndlessBody(t *testing.T) {
	for _, declared := range []bool{false, true} {
		stopped := make(chan int64, 1)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if declared {
				w.Header().Set("Content-Length", fmt.Sprint(int64(1)<<40))
			}
			block, sent := bytes.Repeat([]byte("x"), 1<<20), int64(0)
			for {
				n, err := w.Write(block)
				sent += int64(n)
				if err != nil {
					stopped <- sent
					return
				}
			}
		}))
		f, err := New(Options{URL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		run := jobs.NewRun(jobs.RunInfo{})
		if err := f(t.Context(), run); err != nil || len(run.Output()) != jobs.MaxOutput {
			t.Errorf("error %v, %d bytes are kept", err, len(run.Output()))
		}
		// What the sockets buffer is sent too, but no more.
		if sent := <-stopped; sent < maxBody || sent > 4*maxBody {
			t.Errorf("%d bytes were sent", sent)
		}
		server.Close()
	}
}

func TestBodyThatBreaksOff(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusOK:         "200 OK, but its body broke off: unexpected EOF",
		http.StatusBadGateway: "502 Bad Gateway: half of",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "half of")
		}))
		f, err := New(Options{URL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		run := jobs.NewRun(jobs.RunInfo{})
		err = f(t.Context(), run)
		if err == nil || !strings.HasSuffix(err.Error(), ": "+want) || jobs.IsPermanent(err) || string(run.Output()) != "half of" {
			t.Errorf("error %v, output %q, want %q", err, run.Output(), want)
		}
		server.Close()
	}
}

// TestKept holds what is kept against keeping everything.
func TestKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k kept
		var all []byte
		for range rapid.IntRange(0, 12).Draw(t, "writes") {
			word := rapid.SampledFrom([]string{"a", "bc", "\n", " \r\n", "ä", "\x00"}).Draw(t, "word")
			part := bytes.Repeat([]byte(word), rapid.SampledFrom([]int{0, 1, 3, 200, 40_000, 70_000}).Draw(t, "times"))
			all = append(all, part...)
			if n, err := k.Write(part); n != len(part) || err != nil {
				t.Fatalf("writing %d: %d, %v", len(part), n, err)
			}
			if len(k.end) > 2*jobs.MaxOutput {
				t.Fatalf("%d bytes are kept", len(k.end))
			}
		}
		run := jobs.NewRun(jobs.RunInfo{})
		run.SetOutput(k.end)
		if want := all[max(0, len(all)-jobs.MaxOutput):]; !bytes.Equal(run.Output(), want) {
			t.Fatalf("kept %d bytes, want the last %d", len(run.Output()), len(want))
		}
		line, _, _ := strings.Cut(strings.TrimLeft(string(all), " \t\r\n"), "\n")
		line = strings.ToValidUTF8(line[:min(len(line), maxLine)], "")
		if want := strings.TrimSpace(strings.NewReplacer("\x00", "", "\r", "").Replace(line)); k.firstLine() != want {
			t.Fatalf("first line %q, want %q", k.firstLine(), want)
		}
	})
}
