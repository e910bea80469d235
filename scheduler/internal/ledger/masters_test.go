package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// onCluster is a ledger on a Cluster, and two of its partitions: kept is at the master of the
// control record, and lost at another one.
type onCluster struct {
	t          *testing.T
	ctx        context.Context
	cluster    *redistest.Cluster
	ledger     *ledger.Ledger
	kept, lost int
	master     *redistest.Server // of lost
	road       redistest.Net     // to it
	before     []string          // the masters' ids at first, by partition
}

// whileHung is longer than any call should wait for a master that hangs.
const whileHung = 2 * time.Minute

func newOnCluster(t *testing.T) *onCluster {
	ctx, cancel := context.WithTimeout(t.Context(), whileHung+whileHung/2)
	t.Cleanup(cancel)
	r := &onCluster{t: t, ctx: ctx, cluster: redistest.StartCluster(t), kept: -1, lost: -1}
	home := must(r.cluster.Master(ctx, ledger.NamespaceKeys("m").Control))
	keys := make([]ledger.Keys, 16)
	for p := range keys {
		keys[p] = ledger.PartitionKeys("m", p)
		if master := must(r.cluster.Master(ctx, keys[p].Jobs)); master == home {
			r.kept = p
		} else if r.master == nil || r.master == master {
			r.lost, r.master = p, master
		}
	}
	client := r.cluster.ClientOver(t, func(addr string) *redistest.Net {
		if addr == r.master.Addr() {
			return &r.road
		}
		return nil
	})
	client.Options().ReadTimeout, client.Options().DialTimeout = whileHung, whileHung // only the calls' own deadlines end them
	r.ledger = must(ledger.Join(ctx, client, ledger.Config{Namespace: "m", Partitions: len(keys)}))
	r.before = r.known(nil)
	for p, id := range r.before {
		master := must(r.cluster.Master(ctx, keys[p].Jobs)).Client(t)
		if want := ledger.EpochID(regexp.MustCompile(`master_replid:(\w+)`).FindStringSubmatch(must(master.Info(ctx, "replication").Result()))[1], must(master.Get(ctx, keys[p].Incarnation).Result())); id != want {
			t.Fatalf("partition %d is at %s; want %s", p, id, want)
		}
	}
	return r
}

// known are the masters' ids for a caller that has read them before.
func (r *onCluster) known(before []string) []string {
	ids, err := epoch.Identities(r.ctx, r.ledger, before)
	if slices.Contains(ids, epoch.Nobody) && err == nil {
		r.t.Errorf("%q names all masters", ids)
	}
	return ids
}

// at are the partitions whose master has the same id as one partition's.
func (r *onCluster) at(ids []string, part int) (parts []int) {
	for p, id := range ids {
		if ledger.ServerOf(id) == ledger.ServerOf(ids[part]) {
			parts = append(parts, p)
		}
	}
	return parts
}

func (r *onCluster) now() int64 {
	at, _, err := r.ledger.Time(r.ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	return at.UnixMilli()
}

// send is one of a new job in a partition.
func (r *onCluster) claim(p int, run string) claim.Claim {
	job := ""
	for i := 0; job == "" || r.ledger.Partition(job) != p; i++ {
		job = fmt.Sprint("job-", run, "-", i)
	}
	from := r.now() - 5000
	must(define.Define(r.ctx, r.ledger, r.now(), []define.Definition{{Job: job, Digest: "d-second", Text: []byte("{}"), Cursor: from}}))
	return claim.Claim{Job: job, Digest: "d-second", Run: run, TTL: time.Minute, From: from, Tick: from, Next: from + 1000}
}

// grant claims as a caller with these ids.
func (r *onCluster) grant(ids []string, c claim.Claim) (ledger.Run, error) {
	got, err := claim.Send(r.ctx, r.ledger.At(ids[r.ledger.Partition(c.Job)]), node, r.now(), []claim.Claim{c})
	if err != nil {
		return ledger.Run{}, err
	}
	if got[0].Verdict != claim.Granted {
		r.t.Fatalf("%s: %+v", c.Job, got[0])
	}
	return c.GrantedRun(got[0], node, r.now()), nil
}

func (r *onCluster) renew(server string, leases ...ledger.Run) ([]locking.RenewAnswer, error) {
	var batch []locking.Renewal
	for _, l := range leases {
		batch = append(batch, locking.Renewal{Name: l.Job, Owner: l.ID, Token: l.Token, TTL: time.Minute})
	}
	return settle.Renew(r.ctx, r.ledger.At(server), batch)
}

// refused wants a caller with other masters' ids to be refused.
func (r *onCluster) refused(what string, err error) {
	r.t.Helper()
	if !errors.Is(err, ledger.ErrServer) {
		r.t.Errorf("%s: %v; want ErrServer", what, err)
	}
}

func wantAnswers(t *testing.T, what string, got []locking.RenewAnswer, want ...locking.RenewAnswer) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v; want %v", what, got, want)
	}
}

// TestMastersOfACluster replaces the master of some partitions, and wants callers with its old id
// to be refused there, and nowhere else.
func TestMastersOfACluster(t *testing.T) {
	r := newOnCluster(t)
	l, before := r.ledger, r.before
	here, there := must(r.grant(before, r.claim(r.kept, "r1"))), must(r.grant(before, r.claim(r.lost, "r2")))
	if err := r.master.Kill(); err != nil {
		t.Fatal(err)
	}
	if now := r.known(before); !slices.Equal(now, before) {
		t.Errorf("while a master is away: %s; want that it stays %s", now, before)
	}
	newcomer := r.known(nil)
	if newcomer[r.lost] != epoch.Nobody || newcomer[r.kept] != before[r.kept] {
		t.Errorf("to who comes while a master is away: %q; want nobody at the partitions that it had", newcomer)
	}
	if _, err := r.cluster.Promoted(r.ctx, l.Keys[r.lost].Jobs, r.master); err != nil {
		t.Fatal(err)
	}
	after := before
	for ; slices.Equal(after, before); after = r.known(before) {
		if r.ctx.Err() != nil {
			t.Fatal("nobody has noticed the new master")
		}
		<-time.After(20 * time.Millisecond)
	}
	for p, id := range before {
		if changed := after[p] != id; changed != (ledger.ServerOf(id) == ledger.ServerOf(before[r.lost])) {
			t.Errorf("partition %d is at another server: %t", p, changed)
		}
	}
	a, b := strings.Split(epoch.RosterText(l, before), ","), strings.Split(epoch.RosterText(l, after), ",")
	if len(a) != 3 || len(b) != 3 {
		t.Errorf("fingerprints of three masters: %q, then %q", a, b)
	}
	for _, one := range a {
		if kept := epoch.HasFingerprint(epoch.RosterText(l, after), one); kept == (one == epoch.Fingerprint(l, r.at(before, r.lost), func(p int) string { return before[p] })) {
			t.Errorf("fingerprints %q and then %q; want those of two masters to be the same", a, b)
		}
	}
	if parts := r.at(before, r.kept); epoch.Fingerprint(l, parts, func(p int) string { return before[p] }) == epoch.Fingerprint(l, parts[1:], func(p int) string { return before[p] }) {
		t.Error("a fingerprint does not tell that a master has other partitions")
	}

	late := r.claim(r.lost, "r3")
	_, err := r.grant(before, late)
	r.refused("claim, by who knows the old master", err)
	_, err = r.grant(newcomer, late)
	r.refused("claim, by who came while it was away", err)
	_, err = settle.Settle(r.ctx, l.At(before[r.lost]), []settle.Report{{Job: there.Job, Run: there.ID, Token: there.Token}})
	r.refused("settle", err)
	if _, err = settle.Reap(r.ctx, l, r.now(), before[r.lost], []ledger.Run{there}); !errors.Is(err, ledger.ErrClock) {
		t.Errorf("reap, by who watched the old master's clock: %v; want ErrClock", err)
	}
	_, err = epoch.Reassert(r.ctx, l.At(before[r.lost]), r.now(), []epoch.Assertion{of(there)})
	r.refused("reassert", err)
	_, err = r.renew(before[r.lost], there)
	r.refused("renew", err)
	wantAnswers(t, "renewed by who knows the other master", must(r.renew(before[r.kept], here)), locking.Renewed)

	if said := must(epoch.Reassert(r.ctx, l.At(after[r.lost]), r.now(), []epoch.Assertion{of(there)})); said[0].Status != epoch.Known && said[0].Status != epoch.Restored {
		t.Errorf("told to the new master: %+v", said)
	}
	wantAnswers(t, "renewed by who knows the new master", must(r.renew(after[r.lost], there)), locking.Renewed)
	for _, p := range []int{r.kept, r.lost} {
		if _, err := r.grant(after, r.claim(p, fmt.Sprint("r4-", p))); err != nil {
			t.Errorf("claim by who knows the new master: %v", err)
		}
	}
}

// TestMasterThatHangs: a hanging master keeps back no answer of the other masters.
func TestMasterThatHangs(t *testing.T) {
	r := newOnCluster(t)
	here, there := must(r.grant(r.before, r.claim(r.kept, "r1"))), must(r.grant(r.before, r.claim(r.lost, "r2")))
	r.road.Cut()
	defer r.road.Heal()
	asked := time.Now()
	ids := r.known(nil)
	if took := time.Since(asked); took >= whileHung {
		t.Errorf("to ask who the masters are took %s; want %s and what the machine adds", took, epoch.WhoTimeout)
	}
	for p, id := range r.before {
		want := id
		if id == r.before[r.lost] {
			want = epoch.Nobody
		}
		if ids[p] != want {
			t.Errorf("partition %d is at %q; want %q", p, ids[p], want)
		}
	}
	ctx, cancel := context.WithTimeout(r.ctx, time.Second)
	defer cancel()
	r.ctx = ctx
	got, err := r.renew("", here, there)
	if err != nil {
		t.Error(err)
	}
	wantAnswers(t, "renewed", got, locking.Renewed, locking.Unknown)
}
