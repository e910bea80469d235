package locktest

import (
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
)

func readWriteCases() []testCase {
	return []testCase{
		{name: "readers share, a writer excludes", needs: needsShares, run: readersShare},
		{name: "a waiting writer is not overtaken", needs: needsSharedQueue, run: writerWaits},
		{name: "readers are served when the writer before them is gone", needs: needsSharedQueue, run: writerGone},
	}
}

// mode are the options of a read-write lock.
func mode(m locking.Mode, o locking.Options) locking.Options {
	o.Mode = m
	return o
}

func readersShare(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	l := locker(tb, d)
	read, write := mode(locking.Read, locking.Options{TTL: long}), mode(locking.Write, locking.Options{TTL: long})
	first, second := mustTake(tb, l, read), mustTake(tb, l, read)
	_, err := takeFrom(tb, l, write)
	wantHeld(tb, err, first.Owner(), long)
	read.Reenter, write.Reenter = true, true
	_, err = l.Acquire(first.Context(), name, write)
	wantRefused(tb, "a reader that wants to write", "Options.Mode", err)
	noError(tb, "release", first.Release(tb.Context()))
	_, err = takeFrom(tb, l, write)
	wantHeld(tb, err, second.Owner(), long)
	noError(tb, "release", second.Release(tb.Context()))
	writer := mustTake(tb, l, write)
	if writer.Token() <= second.Token() {
		tb.Fatalf("token %d after %d", writer.Token(), second.Token())
	}
	for _, o := range []locking.Options{read, write} {
		_, err = takeFrom(tb, l, o)
		wantHeld(tb, err, writer.Owner(), long)
	}
	inner, err := l.Acquire(writer.Context(), name, read)
	noError(tb, "a writer that reads", err)
	noError(tb, "release of the inner hold", inner.Release(tb.Context()))
	if all := holders(tb, d); len(all) != 1 || all[0].Share.Mode != locking.Write {
		tb.Fatalf("a writer holds it, and the store says %+v", all)
	}
	noError(tb, "release", writer.Release(tb.Context()))
	noError(tb, "release", mustTake(tb, l, read).Release(tb.Context()))
}

// writerWaits: a newcomer after a waiting writer waits behind it, and readers wait together.
func writerWaits(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	l := locker(tb, d)
	read, write := mode(locking.Read, locking.Options{TTL: long, Wait: long}), mode(locking.Write, locking.Options{TTL: long, Wait: long})
	first := mustTake(tb, l, read)
	writer := join(tb, s, d, 1, write)
	second, third := join(tb, s, d, 2, read), join(tb, s, d, 3, read)
	last := join(tb, s, d, 4, write)
	_, err := takeFrom(tb, l, mode(locking.Read, locking.Options{TTL: long}))
	wantHeld(tb, err, first.Owner(), long)
	noError(tb, "release", first.Release(tb.Context()))
	w := writer.mustGet(tb, locking.QueueTimeout+slack())
	if all := holders(tb, d); len(all) != 1 || all[0].Owner != w.Owner() || all[0].Waiters != 3 {
		tb.Fatalf("the writer has it, and the store says %+v", all)
	}
	noError(tb, "release", w.Release(tb.Context()))
	b, c := second.mustGet(tb, locking.QueueTimeout+slack()), third.mustGet(tb, locking.QueueTimeout+slack())
	noError(tb, "release", b.Release(tb.Context()))
	if all := holders(tb, d); len(all) != 1 || all[0].Owner != c.Owner() {
		tb.Fatalf("a reader has it, and the store says %+v", all)
	}
	noError(tb, "release", c.Release(tb.Context()))
	noError(tb, "release", last.mustGet(tb, locking.QueueTimeout+slack()).Release(tb.Context()))
}

// writerGone: a writer that gives up its place, or is cut off, leaves the way to the readers behind it.
func writerGone(tb testing.TB, s Store) {
	d, _ := s.Connect(tb)
	l := locker(tb, d)
	read, write := mode(locking.Read, locking.Options{TTL: long, Wait: long}), mode(locking.Write, locking.Options{TTL: long, Wait: long})
	mustTake(tb, l, read)
	writer := join(tb, s, d, 1, write)
	first, second := join(tb, s, d, 2, read), join(tb, s, d, 3, read)
	writer.stop()
	start := time.Now()
	first.mustGet(tb, slack())
	second.mustGet(tb, slack())
	tb.Logf("the readers were served %s after the writer had given up", time.Since(start))

	writer = join(tb, s, d, 1, write)
	first, second = join(tb, s, d, 2, read), join(tb, s, d, 3, read)
	writer.net.Cut()
	first.mustGet(tb, locking.QueueTimeout+2*slack())
	second.mustGet(tb, locking.QueueTimeout+2*slack())
	writer.stop()
	if err := <-writer.result; err == nil {
		tb.Fatal("the writer that was cut off has a lease")
	}
	writer.net.Heal()
}
