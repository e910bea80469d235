package httpjob_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/httpjob"
)

func TestContextEndsTheCall(t *testing.T) {
	cause := errors.New("the lease is lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel(cause)
		<-r.Context().Done() // the server's context ends: its client has gone
	}))
	defer server.Close()
	_, err := call(ctx, t, httpjob.Options{URL: server.URL + "/x"}, info())
	if !errors.Is(err, cause) || err.Error() != "POST "+server.URL+"/***: the lease is lost" || jobs.IsPermanent(err) {
		t.Errorf("error %v", err)
	}

	ctx, cancel = context.WithCancelCause(t.Context())
	client := &http.Client{Transport: network(func(req *http.Request) (*http.Response, error) {
		body := io.MultiReader(strings.NewReader("working"), hanging{req.Context(), func() { cancel(cause) }})
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body), Request: req}, nil
	})}
	run, err := call(ctx, t, httpjob.Options{URL: "http://h/p", Client: client}, info())
	if !errors.Is(err, cause) || err.Error() != "POST http://h/***: 200 OK, but its body is incomplete: the lease is lost" || string(run.Written()) != "working" {
		t.Errorf("error %v, output %q", err, run.Written())
	}
}

func TestContextEndedBefore(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(jobs.ErrReplaced)
	client := &http.Client{Transport: network(func(*http.Request) (*http.Response, error) {
		t.Error("sent all the same")
		return nil, io.EOF
	})}
	_, err := call(ctx, t, httpjob.Options{URL: "http://h/p", Client: client}, info())
	if !errors.Is(err, jobs.ErrReplaced) || !strings.HasPrefix(err.Error(), "POST http://h/***: not sent: ") {
		t.Errorf("error %v", err)
	}
}

// Without a job's timeout a call still ends, whether the head or the body never comes.
func TestCallWithoutTimeoutEnds(t *testing.T) {
	silent := network(func(req *http.Request) (*http.Response, error) {
		<-req.Context().Done()
		return nil, req.Context().Err()
	})
	endless := network(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(hanging{req.Context(), func() {}}), Request: req}, nil
	})
	for _, transport := range []http.RoundTripper{silent, endless} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			o := httpjob.Options{URL: "http://h/p", Client: &http.Client{Transport: transport}}
			_, err := call(context.Background(), t, o, info())
			if err == nil || !strings.Contains(err.Error(), "a job without a timeout") || time.Since(start) != time.Minute || jobs.IsPermanent(err) {
				t.Errorf("after %v: %v", time.Since(start), err)
			}
			start = time.Now()
			ctx, cancel := context.WithTimeoutCause(context.Background(), time.Hour, jobs.ErrTimeout)
			defer cancel()
			if _, err := call(ctx, t, o, info()); !errors.Is(err, jobs.ErrTimeout) || time.Since(start) != time.Hour {
				t.Errorf("with a timeout, after %v: %v", time.Since(start), err)
			}
		})
	}
}

// hanging is a body whose bytes never come.
type hanging struct {
	ctx   context.Context
	asked func()
}

func (h hanging) Read([]byte) (int, error) {
	h.asked()
	<-h.ctx.Done()
	return 0, h.ctx.Err()
}
