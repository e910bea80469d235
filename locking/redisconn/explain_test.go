package redisconn_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
)

// saying starts a server that answers every connection, and everything that it reads there, with a text, and closes the
// connection when hangUp is set.
func saying(t *testing.T, text string, hangUp bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				for b := make([]byte, 4096); ; {
					if hangUp {
						_, _ = c.Write([]byte(text))
						_ = c.(*net.TCPConn).CloseWrite()
					}
					n, err := c.Read(b)
					if err != nil || hangUp && n == 0 {
						return
					}
					if !hangUp {
						_, _ = c.Write([]byte(text))
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

// secure starts a server that speaks TLS, and HTTP in it. It can require a
// client certificate.
func secure(t *testing.T, asks bool) (addr string, authority *x509.CertPool) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	if asks {
		s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	}
	s.Config.ErrorLog = nil
	s.StartTLS()
	t.Cleanup(s.Close)
	authority = x509.NewCertPool()
	authority.AddCert(s.Certificate())
	return s.Listener.Addr().String(), authority
}

// closedAddr is an address at which nothing listens.
func closedAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// contact is a first contact that fails, and its expected error.
type contact struct {
	url       string
	authority *x509.CertPool
	kind      redisconn.Kind
	setting   redisconn.Setting
	words     string // $ADDR is the address
}

// Each way in which a first contact can fail has words with the address and a cure, and a kind.
func TestExplain(t *testing.T) {
	t.Parallel()
	const (
		unreachable, readOnly, full = redisconn.KindUnreachable, redisconn.KindReadOnly, redisconn.KindFull
		rights, setting             = redisconn.KindRights, redisconn.KindSetting
	)
	master, replicas := redistest.StartReplicas(t, 1)
	for _, user := range [][]any{{"acl", "setuser", "u", "on", ">hunter2", "~other:*", "+@all"}, {"acl", "setuser", "v", "on", ">hunter2", "~*", "+@all", "-hgetall"}} {
		if err := master.Client(t).Do(t.Context(), user...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	one, web := master.Addr(), httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	_, http1, _ := strings.Cut(web.URL, "//")
	encrypted, authority := secure(t, false)
	asking, askingAuthority := secure(t, true)
	_, encryptedPort, _ := net.SplitHostPort(encrypted)
	gone := closedAddr(t)
	for name, c := range map[string]contact{
		"refused":                {"redis://x:hunter2@" + gone, nil, unreachable, redisconn.SettingURL, "cannot reach Redis at $ADDR|connection refused|start it, or correct its address"},
		"refused over TLS":       {"rediss://" + gone, nil, unreachable, redisconn.SettingURL, "connection refused"},
		"no such socket":         {"unix:///nosuch/socket", nil, unreachable, redisconn.SettingURL, "no such file"},
		"no such host":           {"redis://nosuch.invalid:6379", nil, unreachable, "", "correct the host name nosuch.invalid, or this machine's DNS"},
		"silence":                {"redis://" + saying(t, "", false) + "?read_timeout=50ms", nil, unreachable, redisconn.SettingURL, "cannot reach Redis at $ADDR|i/o timeout"},
		"hangs up":               {"redis://" + saying(t, "", true), nil, unreachable, redisconn.SettingURL, "the server at $ADDR closed the connection|see the log of the server that listens there, or correct the address"},
		"HTTP":                   {"redis://" + http1, nil, setting, redisconn.SettingURL, "what listens at $ADDR speaks HTTP, and is no Redis: correct the port"},
		"a page":                 {"redis://" + saying(t, "<!DOCTYPE html>\r\n", false), nil, setting, redisconn.SettingURL, "speaks HTTP"},
		"SSH":                    {"redis://" + saying(t, "SSH-2.0-OpenSSH_9.2\r\n", true), nil, setting, redisconn.SettingURL, `is no Redis: it answers "SSH-2.0`},
		"HTTP over TLS":          {"rediss://" + http1, nil, setting, redisconn.SettingURL, "what listens at $ADDR speaks HTTP, and is no Redis: correct the port"},
		"SSH over TLS":           {"rediss://" + saying(t, "SSH-2.0-OpenSSH_9.2\r\n", true), nil, setting, redisconn.SettingURL, `is no Redis: it answers "SSH-2`},
		"plain refusal over TLS": {"rediss://" + saying(t, "-ERR unknown\r\n", false), nil, setting, redisconn.SettingTLS, "Redis at $ADDR does not speak TLS"},
		"HTTP, sentinels":        {"redis+sentinel://" + http1 + "/0?master_name=m", nil, setting, redisconn.SettingURL, "what listens at $ADDR speaks HTTP"},
		"plain over TLS":         {"rediss://" + one + "?read_timeout=50ms&dial_timeout=300ms", nil, setting, redisconn.SettingTLS, "Redis at $ADDR does not speak TLS: write redis and not rediss"},
		"TLS without it":         {"redis://" + encrypted, nil, setting, redisconn.SettingTLS, "Redis at $ADDR speaks TLS: write rediss and not redis"},
		"unknown authority":      {"rediss://" + encrypted, nil, setting, redisconn.SettingTLS, "authority that this machine does not know: name the authority's certificate with ?ca_file=FILE in the URL, or in redis.tls.ca_file for redis.url"},
		"unknown, Cluster":       {"rediss+cluster://" + encrypted + "/", nil, setting, redisconn.SettingTLS, "authority that this machine does not know"},
		"another name":           {"rediss://localhost:" + encryptedPort, authority, setting, redisconn.SettingTLS, "has a certificate for other names|redis.tls.server_name"},
		"no client certificate":  {"rediss://" + asking, askingAuthority, setting, redisconn.SettingTLS, "refuses the TLS handshake (certificate required): give a certificate"},
		"wrong password":         {"redis://u:hunter3@" + one, nil, setting, redisconn.SettingURL, "refuses the password, or the user, that is given there (WRONGPASS): write redis://"},
		"no password":            {"redis://" + saying(t, "-NOAUTH Authentication required.\r\n", false), nil, setting, redisconn.SettingURL, "wants a password, and none is given (NOAUTH)"},
		"no right to keys":       {"redis://u:hunter2@" + one, nil, rights, "", "the user of Redis at $ADDR lacks the keys ~{ns}:* ~{ns:*|docs/operations.md"},
		"no right to a command":  {"redis://v:hunter2@" + one, nil, rights, "", "lacks the command hgetall (+hgetall)"},
		"database":               {"redis://" + one + "/99", nil, setting, redisconn.SettingURL, "Redis at $ADDR has no database 99: write a smaller number"},
		"no Cluster":             {"redis+cluster://" + one + "/", nil, setting, redisconn.SettingMode, "Redis at $ADDR is one server, and no Cluster: write redis://$ADDR/0"},
		"no sentinel":            {"redis+sentinel://" + one + "/0?master_name=m", nil, setting, redisconn.SettingMode, "what answers at $ADDR is no sentinel: write the sentinels' own addresses"},
		"of a Cluster":           {"redis://" + saying(t, "-MOVED 3999 127.0.0.1:6381\r\n", false), nil, setting, redisconn.SettingMode, "Redis at $ADDR is a server of a Cluster: write redis+cluster://$ADDR/"},
		"replica":                {"redis://" + replicas[0].Addr(), nil, readOnly, "", "Redis at $ADDR is a replica, which takes no writes|READONLY|name its master"},
		"replica without master": {"redis://" + saying(t, "-MASTERDOWN Link with MASTER is down\r\n", false), nil, readOnly, "", "a replica whose master is gone"},
		"loading":                {"redis://" + saying(t, "-LOADING Redis is loading the dataset in memory\r\n", false), nil, readOnly, "", "Redis at $ADDR loads its data|wait until"},
		"no replicas":            {"redis://" + saying(t, "-NOREPLICAS Not enough good replicas to write.\r\n", false), nil, readOnly, "", "lacks replicas"},
		"Cluster down":           {"redis://" + saying(t, "-CLUSTERDOWN The cluster is down\r\n", false), nil, unreachable, "", "a Cluster that is down"},
		"busy":                   {"redis://" + saying(t, "-BUSY Redis is busy running a script.\r\n", false), nil, unreachable, "", "SCRIPT KILL"},
		"too many clients":       {"redis://" + saying(t, "-ERR max number of clients reached\r\n", true), nil, unreachable, "", "as many clients as it may have|maxclients"},
		"protected mode":         {"redis://" + saying(t, "-DENIED Redis is running in protected mode because ...\r\n", true), nil, unreachable, "", "is in protected mode|requirepass"},
		"memory":                 {"redis://" + saying(t, "-OOM command not allowed when used memory > 'maxmemory'.\r\n", false), nil, full, "", "is full: raise its maxmemory"},
		"disk":                   {"redis://" + saying(t, "-MISCONF Redis is configured to save RDB snapshots\r\n", false), nil, full, "", "cannot write to its disk"},
		"too old":                {"redis://" + saying(t, "-ERR unknown command `HGETALL`, with args beginning with: `x`\r\n", false), nil, unreachable, "", "lacks the command hgetall|use Redis 7 or later"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}

func (c contact) check(t *testing.T) {
	text := c.url
	if !strings.Contains(text, "timeout") { // a handshake takes longer than CallTimeout where a machine is slow
		sep := "?"
		if strings.Contains(text, sep) {
			sep = "&"
		}
		text += sep + "dial_timeout=30s&read_timeout=30s&write_timeout=30s"
	}
	a, err := redisconn.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if c.authority != nil {
		a.One.TLSConfig.RootCAs = c.authority
	}
	client := a.Client()
	defer client.Close()
	err = client.HGetAll(t.Context(), "{ns:0}:jobs").Err()
	if err == nil { // a namespace that is not there is written
		err = redisconn.TxPipelined(t.Context(), client, func(p redis.Pipeliner) error {
			return errors.Join(p.HSetNX(t.Context(), "{ns:0}:jobs", "a", "b").Err(), p.HGetAll(t.Context(), "{ns:0}:jobs").Err())
		})
	}
	raw := redisconn.Classify("open", err)
	err = a.Explain(context.Background(), "ns", raw)
	var got *redisconn.Trouble
	if !errors.As(err, &got) {
		t.Fatalf("%v has no words", raw)
	}
	if got.Kind != c.kind || got.Setting != c.setting {
		t.Errorf("kind %d, setting %q, want %d and %q: %v", got.Kind, got.Setting, c.kind, c.setting, err)
	}
	if passes := c.kind == redisconn.KindUnreachable || c.kind == redisconn.KindReadOnly; passes != errors.Is(err, locking.ErrUnreachable) {
		t.Errorf("is locking.ErrUnreachable: %v, want %v: %v", !passes, passes, err)
	}
	if strings.Contains(err.Error(), "hunter") {
		t.Errorf("%v has the password", err)
	}
	addr := strings.Join(append(addrsOf(a), ""), "")
	for words := range strings.SplitSeq(c.words, "|") {
		if want := strings.ReplaceAll(words, "$ADDR", addr); !strings.Contains(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	if again := a.Explain(context.Background(), "ns", err); again.Error() != err.Error() {
		t.Errorf("explained twice: %v", again)
	}
	if plain := redisconn.Explain(client, "ns", raw); c.setting != redisconn.SettingTLS && !errors.As(plain, new(*redisconn.Trouble)) {
		t.Errorf("the client alone has no words for %v", raw)
	}
}

func addrsOf(a redisconn.Address) []string {
	switch {
	case a.Cluster != nil:
		return a.Cluster.Addrs
	case a.Sentinel != nil:
		return a.Sentinel.SentinelAddrs
	}
	return []string{a.One.Addr}
}

// Errors that are not about a connection are returned unchanged; a closed client has an error of
// its own.
func TestExplainNothing(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(redistest.ClientOptions("127.0.0.1:1"))
	for _, err := range []error{nil, errors.New("no"), answer("WRONGTYPE Operation against a key"), redis.Nil, context.Canceled} {
		if got := redisconn.Explain(client, "", err); !errors.Is(got, err) || got != nil && got.Error() != err.Error() {
			t.Errorf("%v became %v", err, got)
		}
	}
	if redisconn.IsClosed(t.Context(), client) {
		t.Error("an open client counts as closed")
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	err := redisconn.Explain(client, "", client.Ping(t.Context()).Err())
	if !errors.Is(err, redis.ErrClosed) || !strings.Contains(err.Error(), "close it after everything that uses it has returned") || !redisconn.IsClosed(t.Context(), client) {
		t.Errorf("a closed client: %v", err)
	}
}

// A certificate that has expired may be renewed; any other fault of a certificate is a setting, and
// its reason is shown.
func TestExplainCertificates(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(redistest.ClientOptions("127.0.0.1:1"))
	defer client.Close()
	invalid := func(reason x509.InvalidReason) error {
		return &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Cert: new(x509.Certificate), Reason: reason}}
	}
	alert := func(text string) error { return &net.OpError{Op: "remote error", Err: errors.New("tls: " + text)} }
	for _, tt := range []struct {
		err   error
		kind  redisconn.Kind
		words string
	}{
		{invalid(x509.Expired), redisconn.KindUnreachable, "a certificate that does not hold now"},
		{invalid(x509.IncompatibleUsage), redisconn.KindSetting, "incompatible key usage"},
		{invalid(x509.NotAuthorizedToSign), redisconn.KindSetting, "not authorized to sign"},
		{invalid(x509.IncompatibleUsage).(*tls.CertificateVerificationError).Err, redisconn.KindSetting, "incompatible key usage"}, //nolint:errorlint // as made above
		{alert("expired certificate"), redisconn.KindUnreachable, "has expired"},
		{alert("bad certificate"), redisconn.KindSetting, "give a certificate that it trusts"},
	} {
		var got *redisconn.Trouble
		err := redisconn.Explain(client, "", redisconn.Classify("open", tt.err))
		passes := tt.kind == redisconn.KindUnreachable
		if !errors.As(err, &got) || got.Kind != tt.kind || errors.Is(err, locking.ErrUnreachable) != passes || !strings.Contains(err.Error(), tt.words) {
			t.Errorf("%v became %v", tt.err, err)
		}
		if !errors.Is(err, tt.err) && !errors.As(err, new(x509.CertificateInvalidError)) {
			t.Errorf("%v has lost %v", err, tt.err)
		}
	}
}
