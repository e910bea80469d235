package job

import (
	"context"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ops"
)

// TestFresh: pieces of a text of which only the end can be seen make the text again, whatever was
// written meanwhile.
func TestFresh(t *testing.T) {
	seen := func(all string) string { return strings.ToValidUTF8(all[max(0, len(all)-jobs.MaxOutput):], "\uFFFD") }
	random := rand.New(rand.NewPCG(1, 2))
	all, shown, got := "", "", ""
	for range 200 {
		var piece strings.Builder
		for n := random.IntN(3000); n > 0; n-- {
			piece.WriteString([]string{"a", "b\n", "ä", "…"}[random.IntN(4)])
		}
		all += piece.String()
		more, cut := fresh(shown, seen(all))
		if cut && shown != "" {
			t.Fatalf("cut after %d bytes", len(all))
		}
		got, shown = got+more, seen(all)
	}
	if got != all || len(all) < 4*jobs.MaxOutput {
		t.Errorf("%d bytes became %d", len(all), len(got))
	}
	for _, tt := range []struct{ shown, text, more string }{
		{"one\n", "two\n", "two\n"}, // another try
		{strings.Repeat("a", jobs.MaxOutput), strings.Repeat("b", jobs.MaxOutput), strings.Repeat("b", jobs.MaxOutput)},
	} {
		if more, cut := fresh(tt.shown, tt.text); more != tt.more || !cut {
			t.Errorf("%.9q then %.9q: %.9q, %v", tt.shown, tt.text, more, cut)
		}
	}
}

// TestOverlap compares with the dumb way.
func TestOverlap(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	text := func() string {
		b := make([]byte, random.IntN(8))
		for i := range b {
			b[i] = "ab"[random.IntN(2)]
		}
		return string(b)
	}
	for range 20_000 {
		a, b := text(), text()
		want := min(len(a), len(b))
		for !strings.HasSuffix(a, b[:want]) {
			want--
		}
		if got := overlap(a, b); got != want {
			t.Fatalf("overlap of %q and %q: %d, want %d", a, b, got, want)
		}
	}
}

// TestPrintable: a terminal gets no escape sequence, in whatever pieces it comes; a pipe gets every
// byte.
func TestPrintable(t *testing.T) {
	const text = "a\tb\x1b[2J\nc\n"
	if got := print.Printable(text, true); got != "a\tb\\x1b[2J\nc\n" {
		t.Errorf("got %q", got)
	}
	if got := print.Printable(text, false); got != text {
		t.Errorf("got %q", got)
	}
}

// stopped is a namespace whose answers end with the context.
type stopped struct{}

func (stopped) Do(ctx context.Context, _ ops.Actor, _ ops.Row, _, _ any) error { return ctx.Err() }

// TestInterruptedWaits: an interrupted wait prints the interruption, and that the run goes on.
func TestInterruptedWaits(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	in := command.Tool{App: &command.App{Stdout: io.Discard, Stderr: io.Discard}, Ctx: ctx, Client: ops.NewRemote(stopped{}), Args: []string{"r1"}}
	for name, err := range map[string]error{
		"follow": runsFollow(in, ops.RunView{Run: "r1"}),
		"wait":   follow(in, ops.RunView{Run: "r1"}, waiting{wait: true}),
	} {
		if err == nil || !strings.Contains(err.Error(), "run r1, which ") || !strings.HasSuffix(err.Error(), "goes on: interrupted") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
