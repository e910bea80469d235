package ledger

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
)

var identityScript = redisconn.NewScript("identity", redisconn.TokenLua+"return server_id()\n")

// Clustered says whether partitions live on masters of their own, of which one may be away and another not.
func (l *Ledger) Clustered() bool {
	_, yes := l.client.(*redis.ClusterClient)
	return yes
}

// whoTimeout bounds the question who a master is: one that hangs is not to keep what the others say for long.
const whoTimeout = 400 * time.Millisecond

// Nobody is the id of no server: scripts refuse who knows it. It stands for a master that has not answered yet.
const Nobody = "?"

// Masters names the server, for At, Reap and Reassert. It is runID, which Time gave, or on a Cluster a text made of the ids
// of all masters that have something of the namespace: another one when any of them is another server, or was restarted, or
// when a partition moves to another master. One that does not answer, and then all is false, is taken for what it was in
// known, the last text, or for Nobody where that says nothing. So is one that is new and takes no writes yet, because it loads its data or lacks
// replicas: it says who it is long before anybody can tell it anything. Where ids are hidden the text is "".
func (l *Ledger) Masters(ctx context.Context, runID, known string) (server string, all bool) {
	switch {
	case runID == "" || runID == known:
		return runID, true
	case !l.Clustered():
		if known == "" { // who asks first has to write soon
			return runID, true
		}
		if writable, _ := l.writable(ctx, []int{0}); len(writable) == 0 {
			return known, false
		}
		return runID, true
	}
	cmds := l.identities(ctx)
	was, ids, mute := l.byMaster(known), make([]string, len(cmds)), make([]bool, len(cmds))
	var fresh []int
	for p, cmd := range cmds {
		id, err := cmd.Text()
		if ids[p], mute[p] = id, err != nil; mute[p] {
			redisconn.LookAgain(ctx, l.client, redisconn.Explain("ask who it is", err))
		} else if id != at(was, p) {
			fresh = append(fresh, p)
		}
	}
	writable, _ := l.Writable(ctx, fresh)
	all = true
	for p := range ids {
		deaf := slices.Contains(fresh, p) && !slices.Contains(writable, p)
		if deaf && ids[p] == runID {
			runID = cmp.Or(l.Home(known), runID)
		}
		if deaf || mute[p] {
			ids[p], all = cmp.Or(at(was, p), Nobody), false
		}
	}
	return joined(slices.Concat([]string{runID}, ids)), all
}

// identities asks the masters of all partitions who they are, for whoTimeout.
func (l *Ledger) identities(ctx context.Context) []*redis.Cmd {
	ctx, cancel := context.WithTimeout(ctx, whoTimeout)
	defer cancel()
	cmds := make([]*redis.Cmd, len(l.keys))
	l.eachMaster(ctx, l.every(), func(parts []int) {
		ask := func(again bool, add queueFunc) {
			pipe := l.client.Pipeline()
			for _, p := range parts {
				if !again || redisconn.UnknownScript(cmds[p].Err()) {
					cmds[p] = add(ctx, pipe, []string{l.keys[p].jobs})
				}
			}
			if pipe.Len() > 0 {
				_, _ = pipe.Exec(ctx) // each command has its own error, read below
			}
		}
		ask(false, identityScript.Queue)
		ask(true, identityScript.QueueSource)
	})
	return cmds
}

// eachMaster calls f once for each master that has some of the partitions, as the client knows it, with those, and waits for all:
// on a Cluster at the same time, because a pipeline that waits for one that hangs answers for none.
func (l *Ledger) eachMaster(ctx context.Context, parts []int, f func(parts []int)) {
	cluster, yes := l.client.(*redis.ClusterClient)
	if !yes {
		f(parts)
		return
	}
	var wg sync.WaitGroup
	for _, group := range l.groups(ctx, cluster, parts) {
		wg.Go(func() { f(group) })
	}
	wg.Wait()
}

// groups are partitions by their masters.
func (l *Ledger) groups(ctx context.Context, cluster *redis.ClusterClient, parts []int) map[*redis.Client][]int {
	groups := make(map[*redis.Client][]int)
	for _, p := range parts {
		master, _ := cluster.MasterForKey(ctx, l.keys[p].jobs) // nil, where none is known: the call itself says why
		groups[master] = append(groups[master], p)
	}
	return groups
}

// SameMaster is the partitions that live at the same master as one of them, as the client knows it, that one as well.
func (l *Ledger) SameMaster(ctx context.Context, part int) []int {
	all := l.every()
	if cluster, yes := l.client.(*redis.ClusterClient); yes {
		for _, group := range l.groups(ctx, cluster, all) {
			if slices.Contains(group, part) {
				return group
			}
		}
	}
	return all
}

// every is all partitions.
func (l *Ledger) every() []int {
	all := make([]int, len(l.keys))
	for p := range all {
		all[p] = p
	}
	return all
}

// Heard says which of some partitions live at a master that answers, or why not all do.
func (l *Ledger) Heard(ctx context.Context, parts []int) (heard []int, err error) {
	return l.ofMasters(ctx, parts, func(p int) error {
		return redisconn.Explain("ask a silent master", l.client.HLen(ctx, l.keys[p].jobs).Err())
	})
}

// Writable says which of some partitions live at a master that takes writes, or why not all do. It asks for whoTimeout, 400 ms.
func (l *Ledger) Writable(ctx context.Context, parts []int) (writable []int, err error) {
	ctx, cancel := context.WithTimeout(ctx, whoTimeout)
	defer cancel()
	return l.writable(ctx, parts)
}

// writable is Writable for as long as ctx.
func (l *Ledger) writable(ctx context.Context, parts []int) (writable []int, err error) {
	return l.ofMasters(ctx, parts, func(p int) error {
		return redisconn.Explain("ask whether writes are taken", l.client.Set(ctx, l.keys[p].confirm, "", time.Second).Err())
	})
}

// ofMasters calls f with one partition of each master that has some of parts, and returns all partitions of those where it
// succeeded, and the first error.
func (l *Ledger) ofMasters(ctx context.Context, parts []int, f func(part int) error) (good []int, err error) {
	if len(parts) == 0 {
		return nil, nil
	}
	var mu sync.Mutex
	l.eachMaster(ctx, parts, func(parts []int) {
		failed := f(parts[0])
		mu.Lock()
		defer mu.Unlock()
		if failed == nil {
			good = append(good, parts...)
		}
		err = cmp.Or(err, failed)
	})
	return good, err
}

// Master is the id of partition p's master in a text of Masters; "" where it is not known.
func (l *Ledger) Master(server string, p int) string { return at(l.byMaster(server), p) }

// ByPartition are the ids of all partitions' masters in a text of Masters; "" where one is not known.
func (l *Ledger) ByPartition(server string) []string {
	known, ids := l.byMaster(server), make([]string, len(l.keys))
	for p := range ids {
		ids[p] = at(known, p)
	}
	return ids
}

// Home is the id of the control record's master in a text of Masters; "" where it is not known.
func (l *Ledger) Home(server string) string {
	id, _, _ := strings.Cut(server, ",")
	return id
}

// joined spells ids, of which most are equal, as a list in which one that stood there before is its place.
func joined(ids []string) string {
	places := make(map[string]int)
	words := make([]string, len(ids))
	for i, id := range ids {
		place, before := places[id]
		if words[i] = strconv.Itoa(place); !before {
			places[id], words[i] = i, id
		}
	}
	return strings.Join(words, ",")
}

// byMaster is the id for each partition in a text of Masters. Of one id it is that alone, for all partitions; nil, for
// any server, where there is none.
func (l *Ledger) byMaster(server string) []string {
	ids := strings.Split(server, ",")
	switch {
	case server == "":
		return nil
	case len(ids) != len(l.keys)+1: // one for all
		return []string{server}
	}
	for i, id := range ids {
		if place, err := strconv.Atoi(id); err == nil && place < i {
			ids[i] = ids[place]
		}
	}
	return ids[1:]
}

// at is the id for partition p, "" for any.
func at(servers []string, p int) string {
	switch len(servers) {
	case 0:
		return ""
	case 1:
		return servers[0]
	}
	return servers[p]
}

// Fingerprint is what a roster says of a server that Masters named: a text of 40 letters at most.
func Fingerprint(server string) string {
	if !strings.Contains(server, ",") {
		return server
	}
	sum := sha256.Sum256([]byte(server))
	return hex.EncodeToString(sum[:20])
}
