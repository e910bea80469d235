package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
)

var identityScript = redisconn.NewScript("identity", redisconn.TokenLua+"return server_run_id()\n")

// Clustered says whether partitions live on masters of their own, of which one may be away and another not.
func (l *Ledger) Clustered() bool {
	_, yes := l.client.(*redis.ClusterClient)
	return yes
}

// Masters names the server, for At, Reap and Reassert. It is runID, which Time gave, or on a Cluster a text made of the run_ids
// of all masters that have something of the namespace: another one when any of them is another server, or was restarted, or
// when a partition moves to another master. One that does not answer is taken for what it was in known, the last text or "".
// Where run_ids are hidden it is "".
func (l *Ledger) Masters(ctx context.Context, runID, known string) string {
	if !l.Clustered() || runID == "" {
		return runID
	}
	cmds := make([]*redis.Cmd, len(l.keys))
	ask := func(again bool, add queueFunc) {
		pipe := l.client.Pipeline()
		for p, k := range l.keys {
			if !again || redisconn.UnknownScript(cmds[p].Err()) {
				cmds[p] = add(ctx, pipe, []string{k.jobs})
			}
		}
		if pipe.Len() > 0 {
			_, _ = pipe.Exec(ctx) // each command has its own error, read below
		}
	}
	ask(false, identityScript.Queue)
	ask(true, identityScript.QueueSource)
	was := l.byMaster(known)
	ids := []string{runID}
	for p, cmd := range cmds {
		id, err := cmd.Text()
		if err != nil {
			id = at(was, p)
			redisconn.LookAgain(ctx, l.client, redisconn.Explain("ask who it is", err))
		}
		ids = append(ids, id)
	}
	return joined(ids)
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

// byMaster is the run_id for each partition in a text of Masters. Of one run_id it is that alone, for all partitions; nil, for
// any server, where there is none, or where it is not that of all masters.
func (l *Ledger) byMaster(server string) []string {
	ids := strings.Split(server, ",")
	switch {
	case server == "":
		return nil
	case !l.Clustered():
		return []string{server}
	case len(ids) != len(l.keys)+1:
		return nil
	}
	for i, id := range ids {
		if place, err := strconv.Atoi(id); err == nil && place < i {
			ids[i] = ids[place]
		}
	}
	return ids[1:]
}

// at is the run_id for partition p, "" for any.
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
