package lane

import (
	"context"
	"errors"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// renewer renews runs at the server that was told of them.
type renewer struct{ n *Lane }

// Renew is for the keeper of the node's leases. Of runs that the server has not been told of, or that wait to be restored,
// nothing is known.
func (r renewer) Renew(ctx context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
	answers, places := make([]locking.RenewAnswer, len(batch)), make([]int, 0, len(batch))
	server, waits := r.n.failover.keeps()
	asked := make([]locking.Renewal, 0, len(batch))
	for i, b := range batch {
		if _, is := waits[b.Owner]; !is {
			asked, places = append(asked, b), append(places, i)
		}
	}
	if len(asked) == 0 {
		return answers, nil
	}
	got, err := r.n.Ledger.At(server).Renew(ctx, asked)
	if errors.Is(err, ledger.ErrServer) {
		r.n.failover.doubt()
	}
	for i, a := range got {
		answers[places[i]] = a
	}
	return answers, err
}
