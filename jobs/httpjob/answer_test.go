package httpjob

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/escapement/escapement/jobs"
)

// A body without end is read up to the bound, and the call succeeds by its status.
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
		if err := f(t.Context(), run); err != nil || len(run.Written()) != jobs.MaxOutput {
			t.Errorf("error %v, %d bytes are kept", err, len(run.Written()))
		}
		// The server sends as much as the sockets buffer, but no more.
		if sent := <-stopped; sent < maxBody || sent > 4*maxBody {
			t.Errorf("%d bytes were sent", sent)
		}
		server.Close()
	}
}

func TestBodyThatBreaksOff(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusOK:         "200 OK, but its body is incomplete: unexpected EOF",
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
		if err == nil || !strings.HasSuffix(err.Error(), ": "+want) || jobs.IsPermanent(err) || string(run.Written()) != "half of" {
			t.Errorf("error %v, output %q, want %q", err, run.Written(), want)
		}
		server.Close()
	}
}
