package lane

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/ledger"
)

// Renew is for the keepers of lanes: each renews the leases of its partitions, and those that it had, all at the same time. It returns no answers and an
// error when no master answered, and ErrServer beside the answers when one is not the server that was told of the runs.
func (n *Lanes) Renew(ctx context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
	answers, calls := make([]locking.RenewAnswer, len(batch)), make(map[*Lane]map[string][]int)
	for i, b := range batch {
		part := n.Ledger.Partition(b.Name)
		l := n.of(part)
		// Of runs that the server has not been told of, or that wait to be restored, nothing is known.
		server, waits := l.failover.keeps(part)
		if _, is := waits[b.Owner]; is {
			continue
		}
		if calls[l] == nil {
			calls[l] = make(map[string][]int)
		}
		calls[l][server] = append(calls[l][server], i)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var answered bool
	var refused, failed error
	for l, byServer := range calls {
		for server, places := range byServer {
			all.Go(func() {
				got, err := l.renew(ctx, server, batch, places)
				mu.Lock()
				defer mu.Unlock()
				for i, a := range got {
					answers[places[i]] = a
				}
				answered = answered || got != nil
				if errors.Is(err, ledger.ErrServer) {
					refused = err
				}
				failed = cmp.Or(failed, err)
			})
		}
	}
	all.Wait()
	if !answered && len(calls) > 0 {
		return nil, cmp.Or(refused, failed)
	}
	return answers, refused
}

// renew renews leases at a server.
func (l *Lane) renew(ctx context.Context, server string, batch []locking.Renewal, places []int) ([]locking.RenewAnswer, error) {
	asked := make([]locking.Renewal, len(places))
	for i, p := range places {
		asked[i] = batch[p]
	}
	got, err := l.Ledger.At(server).Renew(ctx, asked)
	if errors.Is(err, ledger.ErrServer) {
		l.failover.doubt()
	}
	return got, err
}
