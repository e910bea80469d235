package httpjob_test

import (
	"errors"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/httpjob"
)

// A machine that cannot open a connection has not begun the call. Any other failure is the call's.
func TestNodeFault(t *testing.T) {
	for _, tt := range []struct {
		op    string
		err   error
		fault bool
	}{
		{"dial", syscall.EMFILE, true},
		{"dial", syscall.ENFILE, true},
		{"dial", syscall.ENOMEM, true},
		{"dial", syscall.ENOBUFS, true},
		{"dial", syscall.EADDRNOTAVAIL, false}, // of one destination: IPv6 is switched off, or no port is left for it
		{"dial", syscall.ECONNREFUSED, false},
		{"read", syscall.ENOBUFS, false}, // it may have been sent
	} {
		client := &http.Client{Transport: network(func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: tt.op, Net: "tcp", Err: os.NewSyscallError("socket", tt.err)}
		})}
		f, err := httpjob.New(httpjob.Options{URL: "http://host/", Client: client})
		if err != nil {
			t.Fatal(err)
		}
		if err := f(t.Context(), jobs.NewRun(jobs.RunInfo{})); jobs.IsNodeFault(err) != tt.fault || !errors.Is(err, tt.err) {
			t.Errorf("%s: %v: the node's %t, want %t", tt.op, err, jobs.IsNodeFault(err), tt.fault)
		}
	}
}
