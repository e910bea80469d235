package httpjob_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/httpjob"
)

func ExampleNew() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Println(r.Method, r.URL.Path, string(body), err)
		fmt.Println(r.Header.Get("Escapement-Job"), r.Header.Get("Escapement-Tick"), r.Header.Get("Fencing-Token"))
		fmt.Fprintln(w, "settled 12 orders")
	}))
	defer server.Close()

	call, err := httpjob.New(httpjob.Options{
		URL:     server.URL + "/settle",
		Headers: map[string]string{"Authorization": "Bearer 123"},
		Body:    `{"limit": 100}`,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	reg := jobs.NewRegistry()
	reg.MustAdd(jobs.Job{Name: "settle", Schedule: "*/5 * * * *", Timeout: time.Minute, Func: call})

	// A node's steps for a granted tick:
	job, _ := reg.Get("settle")
	run := jobs.NewRun(jobs.RunInfo{Job: job.Name, Tick: time.Date(2026, 3, 1, 12, 5, 0, 0, time.UTC), Token: 17})
	err = job.Func(context.Background(), run)
	fmt.Print(string(run.Written()))
	fmt.Println(err)
	// Output:
	// POST /settle {"limit": 100} <nil>
	// settle 2026-03-01T12:05:00.000Z 17
	// settled 12 orders
	// <nil>
}

// A status that is not expected is an error. Retrying cannot help against most of 4xx.
func ExampleNew_failure() {
	client := &http.Client{Transport: answers{http.StatusUnprocessableEntity, "no such account\n"}}
	call, err := httpjob.New(httpjob.Options{URL: "https://example.org/settle?key=123", Client: client})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = call(context.Background(), jobs.NewRun(jobs.RunInfo{Job: "settle"}))
	fmt.Println(err)
	fmt.Println("no retry:", jobs.IsPermanent(err))
	// Output:
	// POST https://example.org/***: 422 Unprocessable Entity: no such account
	// no retry: true
}

func ExampleOptions_Validate() {
	fmt.Println(httpjob.Options{
		Method:  "post",
		URL:     "example.org",
		Headers: map[string]string{"Upgrade": "h2c", "Escapement-Job": "other"},
		Expect:  "ok",
	}.Validate())
	// Output:
	// method: "post" is not one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS
	// url: is not http:// or https://; write one like https://example.org/hook
	// headers.Escapement-Job: is set by the run; use another name
	// headers.Upgrade: belongs to the connection and is set by the client; remove it
	// expect: "ok" is not a status; write a list of numbers from 200 to 599 and of 2xx to 5xx, such as "200,204"
}
