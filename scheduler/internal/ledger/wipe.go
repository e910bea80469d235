package ledger

import (
	"context"
	"fmt"
	"slices"

	"github.com/escapement/escapement/locking/redisconn"
)

// wipeKeys is how many keys one call deletes.
const wipeKeys = 1000

// Wipe deletes everything in the partitions whose gates are in this state, and had this move last,
// but for the gates. It returns ErrRefused at another gate.
func (l *Ledger) Wipe(ctx context.Context, id, state string) error {
	for p := range l.keys {
		if err := l.WipePartition(ctx, p, id, state); err != nil {
			return err
		}
	}
	return nil
}

// WipePartition is Wipe for one partition.
func (l *Ledger) WipePartition(ctx context.Context, p int, id, state string) error {
	return l.wipe(ctx, p, id, state, "")
}

// wipe is Wipe for one partition, with the number of the copy that must have begun last, "" for
// any. The histories leave before the jobs that name them.
func (l *Ledger) wipe(ctx context.Context, p int, id, state, number string) error {
	k := l.keys[p]
	names, err := l.client.HKeys(ctx, k.jobs).Result()
	if err != nil {
		return redisconn.Classify("look what is in the partition", err)
	}
	var gone []string
	for _, name := range names {
		gone = append(gone, k.history+name)
	}
	gone = append(gone, slices.DeleteFunc(k.all(), func(key string) bool { return key == k.gate })...)
	for some := range slices.Chunk(gone, wipeKeys) {
		word, err := wipeScript.Run(ctx, l.client, append([]string{k.gate}, some...), state, id, number).Text()
		if err != nil {
			return redisconn.Classify("wipe", err)
		}
		if word != "done" {
			return fmt.Errorf("%w: wipe partition %d at %s: its gate is %q; `move status` shows the next step", ErrRefused, p, redisconn.Addr(l.client), word)
		}
	}
	return nil
}
