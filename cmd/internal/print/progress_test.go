package print

import (
	"testing"
	"time"

	"github.com/escapement/escapement/scheduler/ops"
)

func TestProgressInWords(t *testing.T) {
	end := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, x := range []struct {
		p             *ops.ProgressView
		percent, text string
	}{
		{nil, "", ""},
		{&ops.ProgressView{Done: 7, Note: "page 7"}, " 7", "7, page 7"},
		{&ops.ProgressView{Done: 119, Total: 200}, " 59%", "119 of 200, 59%"},
		{&ops.ProgressView{Done: 120, Total: 200, Note: "page 120", End: end}, " 60%", "120 of 200, 60%, page 120; it would end at 2026-03-01T12:00:00.000Z"},
	} {
		if Percent(x.p) != x.percent || Progress(x.p) != x.text {
			t.Errorf("%+v: %q, %q", x.p, Percent(x.p), Progress(x.p))
		}
	}
}
