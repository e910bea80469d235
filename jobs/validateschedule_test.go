package jobs_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
)

// The clock of these tests begins with the year 2000.
func TestValidateBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		day := func(text string) time.Time { return at(t, text+"T00:00:00Z") }
		many := make([]string, 501)
		for i := range many {
			many[i] = time.Unix(0, 0).UTC().AddDate(31, 0, i).Format(time.DateOnly)
		}
		for _, c := range []struct {
			job         jobs.Job
			field, want string // "" for a good job
		}{
			{job: jobs.Job{Except: []string{"2000-12-24", "2000-12-31..2001-01-02"}}},
			{job: jobs.Job{Only: []string{"2004-12-24"}}},
			{job: jobs.Job{Only: []string{"2005-01-02"}}, field: "only", want: "leaves no tick in the next 5 years; choose days"},
			{job: jobs.Job{Only: []string{"2007-01-01"}, StartAt: day("2006-01-01")}},
			{job: jobs.Job{Except: []string{"2000-01-01..2004-12-31"}}},
			{job: jobs.Job{Except: []string{"2000-01-01..2005-06-30"}}, field: "except", want: "leaves no tick in the next 5 years"},
			{job: jobs.Job{Schedule: "0 0 1 1 *", Except: []string{"2000-01-01", "2001-01-01..2004-01-01", "2005-01-01"}}, field: "except", want: "next 5 years"},
			{job: jobs.Job{Schedule: "0 0 1 * *", Only: []string{"2000-12-24"}}, field: "only", want: "no tick is left by only 2000-12-24; choose"},
			{job: jobs.Job{Except: []string{"2000-12-24"}, Only: []string{"2000-12-24"}}, field: "only", want: "leave no day"},
			{job: jobs.Job{Except: []string{"2000-12-24", "24.12.2000"}}, field: "except[1]", want: `"24.12.2000" is not a date such as 2026-12-24, or a range`},
			{job: jobs.Job{Only: []string{"2000-02-30"}}, field: "only[0]", want: `"2000-02-30" is not a date`},
			{job: jobs.Job{Only: []string{"2000-12-24..2000-12-20"}}, field: "only[0]", want: "backwards; write its first day first"},
			{job: jobs.Job{Only: []string{"1999-12-31..2000-12-20"}}, field: "only[0]", want: "1999-12-31 is outside the years 2000 to 2199"},
			{job: jobs.Job{Except: many}, field: "except", want: "501 dates and ranges, more than 500"},
			{job: jobs.Job{Except: many[:500]}},
			{job: jobs.Job{StartAt: day("2000-03-01"), EndAt: day("2000-03-01")}},
			{job: jobs.Job{StartAt: day("2000-03-01"), EndAt: day("2000-02-01")}, field: "end_at", want: "2000-02-01T00:00:00Z is before start_at, 2000-03-01T00:00:00Z"},
			{job: jobs.Job{StartAt: day("2000-03-01").Add(time.Second), EndAt: day("2000-03-01").Add(time.Minute)}, field: "end_at", want: "no tick is left by from 2000-03-01T00:00:01Z"},
			{job: jobs.Job{StartAt: day("2000-03-01").Add(time.Microsecond)}, field: "start_at", want: "whole number of milliseconds"},
			{job: jobs.Job{EndAt: day("1999-03-01")}, field: "end_at", want: "year 1999 is outside 2000 to 2199"},
			{job: jobs.Job{Schedule: "@daily except 2000-12-24"}, field: "schedule", want: "has except 2000-12-24; write bounds as except, only, start_at, end_at and jitter of the job"},
			{job: jobs.Job{After: []string{"other"}, Except: []string{"2000-12-24"}}, field: "except", want: "is not used: a job with after has no schedule"},
			{job: jobs.Job{After: []string{"other"}, StartAt: day("2000-12-24")}, field: "start_at", want: "is not used"},
		} {
			j := c.job
			j.Name, j.Func = "report", nothing
			if j.Schedule == "" && len(j.After) == 0 {
				j.Schedule = "@daily"
			}
			err := j.Validate()
			if c.field == "" {
				if err != nil {
					t.Errorf("%+v: %v", c.job, err)
				}
				continue
			}
			if got := fmt.Sprint(faultsOf(t, err)); got != "["+c.field+"]" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v:\n got %v\nwant %s: %s", c.job, err, c.field, c.want)
			}
		}
	})
}

// A job that was good stays good when its days and its end are past: else its nodes would not start again.
func TestBoundsThatArePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := good()
		j.Only, j.EndAt = []string{"2000-01-02..2000-01-03"}, at(t, "2000-01-03T12:00:00Z")
		for range 3 {
			if err := j.Validate(); err != nil {
				t.Fatalf("at %v: %v", time.Now().UTC(), err)
			}
			time.Sleep(4 * 365 * 24 * time.Hour)
		}
		s, err := j.ParsedSchedule()
		if err != nil || !s.Next(time.Now()).IsZero() {
			t.Fatalf("next tick %v, %v", s.Next(time.Now()), err)
		}
	})
}
