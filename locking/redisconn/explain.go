package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
)

// Kind is the kind of a Trouble's cause.
type Kind int

// The kinds of a Trouble.
const (
	KindUnreachable Kind = iota + 1 // no answer, or not from a server that can serve now; wraps locking.ErrUnreachable
	KindReadOnly                    // the server answers, and takes no writes; wraps locking.ErrUnreachable
	KindFull                        // the server has no memory or disk left
	KindRights                      // the server's user lacks a permission
	KindSetting                     // the address, TLS or password is wrong: the server repeats its answer
	KindClosed                      // the program has closed the client
)

// Setting is the setting to correct for a Trouble.
type Setting string

// The settings of a connection.
const (
	SettingURL              Setting = "url"
	SettingTLS              Setting = "tls"
	SettingMode             Setting = "mode" // one server, sentinels or a Cluster
	SettingMasterName       Setting = "master_name"
	SettingSentinelPassword Setting = "sentinel_password"
)

// Trouble is why a Redis cannot be used: where, what, and what to do. Every error of a first contact becomes one by
// Explain or Address.Explain.
type Trouble struct {
	Kind     Kind
	Setting  Setting // to correct; "" where no setting helps
	Password bool    // the correction holds a password, which belongs into a file
	Redis    string  // the address, without user and password
	Text     string  // the fault, with the address
	Cure     string  // the cure
	Err      error   // the client's error; wraps locking.ErrUnreachable only for the kinds that do
}

// Error is the fault, the client's error where it adds a fact, and the cure.
func (t *Trouble) Error() string {
	if t.Kind == KindSetting || t.Kind == KindClosed {
		return t.Text + ": " + t.Cure
	}
	if t.Kind == KindFull {
		return fmt.Sprintf("%s: %s (%v)", t.Text, t.Cure, t.Err)
	}
	return fmt.Sprintf("%s: %v; %s", t.Text, t.Err, t.Cure)
}

// passes reports whether a later attempt may succeed without any change here.
func (t *Trouble) passes() bool { return t.Kind == KindUnreachable || t.Kind == KindReadOnly }

// of completes a Trouble about a client's error.
func (t *Trouble) of(a Address, err error) *Trouble {
	t.Redis, t.Err = a.String(), err
	//guard:setting-stays P8 a program that asks again while ErrUnreachable lasts ends at a wrong setting
	if !t.passes() {
		t.Err = declassified(err)
	}
	return t
}

// Unwrap returns the client's error.
func (t *Trouble) Unwrap() error { return t.Err }

// Is makes a Trouble match locking.ErrUnreachable when a later attempt may succeed without any change here.
func (t *Trouble) Is(target error) bool {
	return target == locking.ErrUnreachable && t.passes()
}

// Explain turns an error of a client into a Trouble. Any other error, and nil, is returned as it
// is. namespace is for the rights that a user lacks. Explain sends nothing; Address.Explain finds
// out more.
func Explain(client redis.UniversalClient, namespace string, err error) error {
	if err == nil || isNil(client) {
		return err
	}
	a := addressOf(client)
	if c, is := client.(*redis.ClusterClient); is && errors.Is(err, redis.Nil) && !hasTopology(c) {
		return unnamedServers(a).of(a, err)
	}
	return explained(a, namespace, err)
}

// Explain is the function Explain for a client of this address. Where the client's error leaves the
// cause open, Explain calls the servers, each for CallTimeout at most.
func (a Address) Explain(ctx context.Context, namespace string, err error) error {
	if err == nil {
		return nil
	}
	inner, had := err, (*Trouble)(nil)
	if errors.As(err, &had) {
		inner = had.Err // an address has more than its client, from which these words came
	}
	if t := a.asked(ctx, inner); t != nil {
		return t
	}
	if had != nil && had.Redis == a.String() {
		return err
	}
	return explained(a, namespace, inner)
}

// explained is Explain for a known address.
func explained(a Address, namespace string, err error) error {
	if errors.As(err, new(*Trouble)) {
		return err
	}
	for _, known := range []func(Address, string, error) *Trouble{
		closedClient, otherKind, unknownMaster, badPassword, lackingRights, full, badFiles, badTLS, noRedis, tooOld, refusing, unanswered,
	} {
		if t := known(a, namespace, err); t != nil {
			return t.of(a, err)
		}
	}
	return err
}

// addressOf is the address of a client. A client of sentinels does not show it.
func addressOf(client redis.UniversalClient) Address {
	switch c := client.(type) {
	case interface{ Options() *redis.Options }:
		if o := c.Options(); o.Addr != failoverAddr {
			return Address{One: o}
		}
		return Address{Sentinel: &redis.FailoverOptions{}}
	case interface{ Options() *redis.ClusterOptions }:
		return Address{Cluster: c.Options()}
	}
	return Address{}
}

func closedClient(_ Address, _ string, err error) *Trouble {
	if !errors.Is(err, redis.ErrClosed) {
		return nil
	}
	return &Trouble{Kind: KindClosed, Text: "the Redis client is closed", Cure: "close it after everything that uses it has returned"}
}

// otherKind finds a server of another kind than in the address.
func otherKind(a Address, _ string, err error) *Trouble {
	wrong := func(s Setting, what, cure string) *Trouble {
		return &Trouble{Kind: KindSetting, Setting: s, Text: "Redis at " + a.String() + " " + what, Cure: cure}
	}
	text, scheme := err.Error(), a.scheme()
	switch {
	case strings.Contains(text, "DB index is out of range"):
		return wrong(SettingURL, fmt.Sprintf("has no database %d", a.Database()), "write a smaller number, or raise `databases` in redis.conf")
	case a.One != nil && isReply(err, "MOVED ", "ASK ", "CROSSSLOT "):
		at := a.One.Addr
		if a.One.Network == "unix" {
			at = "HOST:PORT"
		}
		return wrong(SettingMode, "is a server of a Cluster", fmt.Sprintf("write %s+cluster://%s/ (or redis.mode: cluster)", scheme, at))
	case a.Cluster != nil && strings.Contains(text, "cluster support disabled"):
		return &Trouble{Kind: KindSetting, Setting: SettingMode, Text: "Redis at " + a.names() + " is one server, and no Cluster", Cure: fmt.Sprintf("write %s://%s/0 (or redis.mode: standalone)", scheme, a.first())}
	case a.Sentinel != nil && strings.Contains(strings.ToLower(text), "unknown command 'sentinel'"):
		return &Trouble{Kind: KindSetting, Setting: SettingMode, Text: "what answers at " + a.names() + " is no sentinel",
			Cure: fmt.Sprintf("write the sentinels' own addresses (HOST:26379), or %s://%s/0 for that one server (or redis.mode: standalone)", scheme, a.first())}
	}
	return nil
}

// unknownMaster finds the answer of sentinels without a master of this name.
func unknownMaster(a Address, _ string, err error) *Trouble {
	if a.Sentinel == nil || !errors.Is(err, redis.Nil) || errors.Is(err, locking.ErrUnreachable) {
		return nil
	}
	return &Trouble{Kind: KindSetting, Setting: SettingMasterName, Text: "the sentinels " + a.names() + " know no master of that name",
		Cure: "write the one that `sentinel monitor NAME ...` gives them"}
}

// badPassword finds a refused or missing password of the server itself; refusedBySentinels finds
// the sentinels' passwords.
func badPassword(a Address, _ string, err error) *Trouble {
	reply := redis.Error(nil)
	if !errors.As(err, &reply) || !isReply(err, "NOAUTH ", "WRONGPASS ") && !strings.Contains(reply.Error(), "without any password configured") {
		return nil
	}
	form := "redis://:PASSWORD@HOST:6379/0"
	if a.One == nil {
		form = "redis://:PASSWORD@/0"
	}
	return &Trouble{Kind: KindSetting, Setting: SettingURL, Password: true, Text: "Redis at " + a.String() + " " + wanting(reply, "a password"),
		Cure: "write " + form + ", for a user of its own with USER in front of the colon"}
}

// wanting is what the reply of a server, or a sentinel, means about the password.
func wanting(reply error, password string) string {
	switch {
	case isReply(reply, "WRONGPASS "):
		return "refuses the password, or the user, that is given there (WRONGPASS)"
	case strings.Contains(reply.Error(), "without any password configured"):
		return "has no password, and one is given"
	}
	return "wants " + password + ", and none is given (NOAUTH)"
}

// full finds a server without memory or disk.
func full(a Address, _ string, err error) *Trouble {
	switch {
	case !Full(err):
		return nil
	case isReply(err, "MISCONF "):
		return &Trouble{Kind: KindFull, Text: "Redis at " + a.String() + " cannot write to its disk and takes no writes", Cure: "free space there, then run this again"}
	}
	return &Trouble{Kind: KindFull, Text: "Redis at " + a.String() + " is full", Cure: FreeMemory}
}

// FreeMemory is the cure for a Redis without memory.
const FreeMemory = "raise its maxmemory, or delete what else is stored there; nodes go on by themselves"

// refusals are the replies of a server that cannot serve now, with their meanings and cures.
var refusals = []struct {
	kind              Kind
	reply, text, cure string
}{
	{KindReadOnly, "LOADING ", "loads its data", "wait until it has loaded"},
	{KindReadOnly, "READONLY ", "is a replica, which takes no writes", "name its master, or the sentinels that know it (redis.mode)"},
	{KindReadOnly, "MASTERDOWN ", "is a replica whose master is gone", "name the master, or the sentinels that know it (redis.mode)"},
	{KindReadOnly, "NOREPLICAS ", "lacks replicas (min-replicas-to-write), and takes no writes", "start replicas, or lower that setting"},
	{KindUnreachable, "CLUSTERDOWN ", "is a server of a Cluster that is down", "start the masters that are missing (redis-cli --cluster check)"},
	{KindUnreachable, "BUSY ", "runs a script that does not end", "wait, or end it with SCRIPT KILL"},
	{KindUnreachable, "ERR max number of clients ", "has as many clients as it may have", "raise its maxclients, or end some (CLIENT LIST)"},
	{KindUnreachable, "DENIED ", "is in protected mode, and serves this machine from nowhere but itself", "give it a password (requirepass, or a user), or bind it to a private address with protected-mode no"},
}

// refusing finds the reply of a server that cannot serve now.
func refusing(a Address, _ string, err error) *Trouble {
	for _, r := range refusals {
		if isReply(err, r.reply) {
			return &Trouble{Kind: r.kind, Text: "Redis at " + a.String() + " " + r.text, Cure: r.cure}
		}
	}
	return nil
}

// Replica reads a server's role. It returns err as the cause of a Trouble of KindReadOnly for a
// replica, and nil for a master, or without an answer.
func Replica(ctx context.Context, client redis.UniversalClient, err error) *Trouble {
	one, is := client.(*redis.Client)
	if !is {
		return nil
	}
	info, refused := one.Info(ctx, "replication").Result()
	if refused != nil || !strings.Contains(info, "role:slave") {
		return nil //nolint:nilerr // a server that does not tell its role leaves the caller's error as it is
	}
	a := addressOf(client)
	return refusing(a, "", serverReply("READONLY ")).of(a, err)
}

// unanswered finds the lack of an answer.
func unanswered(a Address, _ string, err error) *Trouble {
	if !errors.Is(err, locking.ErrUnreachable) { // of a client, as Classify has found: a file that is not there has such errors too
		return nil
	}
	t := &Trouble{Kind: KindUnreachable, Setting: SettingURL, Text: "cannot reach Redis at " + a.String(), Cure: "start it, or correct its address"}
	if dns := (*net.DNSError)(nil); errors.As(err, &dns) {
		t.Setting, t.Cure = "", fmt.Sprintf("correct the host name %s, or this machine's DNS", dns.Name)
	} else if closedByServer(err) {
		t.Text, t.Cure = "the server at "+a.String()+" closed the connection", "start Redis there if it was stopped; see the log of the server that listens there, or correct the address"
	} else if a.encrypted() && !refusedConnection(err) {
		t.Cure = "start it (does it not speak TLS? then write redis and not rediss), or correct its address"
	}
	return t
}
