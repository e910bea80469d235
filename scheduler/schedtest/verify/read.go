package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/escapement/escapement/scheduler/ledger"
)

// ReadBooks reads all books of a namespace, when nobody writes any more. It is the only thing in this package
// that talks to Redis. Rows that cannot be read are named in Chain.
func ReadBooks(ctx context.Context, l *ledger.Ledger) (Books, error) {
	b := Books{Cursor: make(map[string]time.Time)}
	wrong, err := l.Verify(ctx, "")
	if err != nil {
		return b, err
	}
	for _, v := range wrong {
		b.Chain = append(b.Chain, v.Job+": "+v.What)
	}
	stored, err := l.Jobs(ctx)
	if err != nil {
		return b, err
	}
	var names []string
	for _, s := range stored {
		names = append(names, s.Job)
		b.Cursor[s.Job] = time.Time{}
		if s.Cursor != 0 {
			b.Cursor[s.Job] = instant(s.Cursor)
		}
	}
	var foreign int
	if b.Rows, foreign, err = l.History(ctx, names); err != nil {
		return b, err
	}
	if foreign > 0 {
		b.Chain = append(b.Chain, fmt.Sprintf("%d rows of the history cannot be read", foreign))
	}
	b.Open, err = l.Open(ctx, names...)
	return b, err
}
