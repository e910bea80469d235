package scheduler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// A program's job with the name of a stored job does not run, however new the program is, until the
// stored one is deleted. The job that was deleted leaves no run behind, and the program's job
// stays.
func TestStoredJobKeepsItsName(t *testing.T) {
	for _, revision := range []string{"1", "2", "3"} {
		t.Run("revision "+revision, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
				s := &sink{}
				c.handlers = report(s)
				a := c.start("a", scheduler.Config{Revision: "2"})
				c.handlers = nil
				time.Sleep(time.Second)
				must[ops.StoredJob](t)(c.ops().PutJob(t.Context(), tenant(1), ops.PutOptions{}))
				time.Sleep(2 * time.Second)
				b := c.start("b", scheduler.Config{Revision: revision}, eachSecond("tenant-1", s))
				time.Sleep(8 * time.Second)
				if v := c.job("tenant-1"); v.Stored.IsZero() || s.ranOn("b", time.Time{}) > 0 || s.ranOn("a", time.Now().Add(-4*time.Second)) < 3 {
					t.Errorf("the program's job has taken the name: %+v", v)
				}
				if !strings.Contains(c.logs.String(), "a stored job has this name and was there first: it runs; delete the stored one (`jobs delete tenant-1`)") {
					t.Error("nobody says so")
				}
				if p := c.problem("job_name_twice"); p.On != "tenant-1" || !strings.Contains(p.Text, "b") {
					t.Errorf("doctor says %+v", p)
				}
				if err := a.Add(eachSecond("tenant-1", s)); err == nil || !strings.Contains(err.Error(), "job tenant-1: a stored job has this name; delete it with `jobs delete tenant-1`, or choose another name") {
					t.Errorf("added to a node that has the stored one: %v", err)
				}
				time.Sleep(500 * time.Millisecond)
				if err := c.ops().Delete(t.Context(), "tenant-1", time.Time{}); err != nil {
					t.Error(err)
				}
				deleted := time.Now()
				time.Sleep(6 * time.Second)
				if n := s.ranOn("b", deleted); n < 4 || s.ranOn("a", deleted) > 0 {
					t.Errorf("%d runs of the program's job in six seconds after the stored one was deleted", n)
				}
				if v := c.job("tenant-1"); !v.Stored.IsZero() || v.NoNode != "" {
					t.Errorf("then %+v", v)
				}
				if err := b.Ready(); err != nil {
					t.Error(err)
				}
				c.end()
				s.check(t)
			})
		})
	}
}

// A stored job that came second, because the program registered its own while it was put, does not
// run until the program has dropped that.
func TestProgramJobKeepsItsName(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		c.handlers = report(s)
		c.start("a", scheduler.Config{Revision: "3"})
		time.Sleep(time.Second)
		var b *running
		slow := c.ops(around{script: "catalog", before: func() {
			if b == nil {
				b = c.start("b", scheduler.Config{Revision: "2"}, eachSecond("tenant-1", s))
			}
			time.Sleep(time.Second)
		}})
		must[ops.StoredJob](t)(slow.PutJob(t.Context(), tenant(1), ops.PutOptions{}))
		time.Sleep(8 * time.Second)
		if v := c.job("tenant-1"); !v.Stored.IsZero() || s.ranOn("a", time.Time{}) > 0 || s.ranOn("b", time.Now().Add(-4*time.Second)) < 3 {
			t.Errorf("the stored job has taken the name: %+v", v)
		}
		if !strings.Contains(c.logs.String(), "a job of a program has this name and was there first: it runs") {
			t.Error("nobody says so")
		}
		if p := c.problem("job_name_twice"); p.On != "tenant-1" {
			t.Errorf("doctor says %+v", p)
		}
		if err := b.Remove("tenant-1"); err != nil {
			t.Fatal(err)
		}
		dropped := time.Now()
		time.Sleep(10 * time.Second)
		if v := c.job("tenant-1"); v.Stored.IsZero() || s.ranOn("", dropped) < 6 {
			t.Errorf("%d runs of the stored job in ten seconds after the program dropped its own: %+v", s.ranOn("", dropped), v)
		}
		if p := c.problem("job_name_twice"); p.Code != "" {
			t.Errorf("doctor says %+v", p)
		}
		c.end()
		s.check(t)
	})
}

// problem is the first problem of a code.
func (c *cluster) problem(code string) ops.Problem {
	c.t.Helper()
	for _, p := range must[[]ops.Problem](c.t)(c.ops().Problems(c.t.Context())) {
		if p.Code == code {
			return p
		}
	}
	return ops.Problem{}
}
