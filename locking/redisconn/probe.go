package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// asked calls the servers of an address to find a cause that err leaves open: whose password was
// refused, and why a connection was closed without a word.
func (a Address) asked(ctx context.Context, err error) *Trouble {
	var t *Trouble
	switch {
	case a.Sentinel != nil && isReply(err, "NOAUTH ", "WRONGPASS "):
		t = a.refusedBySentinels(ctx)
	case silentEnd(err), errors.As(err, new(tls.RecordHeaderError)):
		t = a.probe(ctx)
	}
	if t != nil {
		return t.of(a, err)
	}
	return nil
}

// silentEnd reports whether a connection was made, and was closed or not answered.
func silentEnd(err error) bool {
	op := (*net.OpError)(nil)
	if errors.As(err, &op) && op.Op == "dial" || errors.As(err, new(redis.Error)) || errors.As(err, new(*net.DNSError)) {
		return false
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// closedByServer reports whether a server closed a connection that it had accepted.
func closedByServer(err error) bool {
	return silentEnd(err) && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded)
}

// probe calls the first server of an address without TLS, and with it.
func (a Address) probe(ctx context.Context) *Trouble {
	addrs := a.addrs()
	if len(addrs) == 0 || a.One != nil && a.One.Network == "unix" {
		return nil
	}
	reply := plainReply(ctx, addrs[0])
	switch line, _, _ := strings.Cut(reply, "\r\n"); {
	case strings.HasPrefix(line, "-"):
		if t := refusing(a, "", serverReply(line[1:])); t != nil {
			return t
		}
		fallthrough // such as -NOAUTH
	case strings.HasPrefix(line, "+"):
		if a.encrypted() {
			return plainServer(a)
		}
		return nil
	case line != "" && line[0] != tlsAlert:
		return strangeServer(a, strconv.Quote(line))
	case !a.encrypted() && speaksTLS(ctx, addrs[0]):
		return encryptedServer(a)
	}
	return nil
}

// serverReply is an error reply that was read without go-redis.
type serverReply string

func (r serverReply) Error() string { return string(r) }
func (r serverReply) RedisError()   {}

// tlsAlert is the first byte of an alert, by which a server with TLS answers text that is not TLS.
const tlsAlert = 0x15

// plainReply is the beginning of a server's answer to PING, "" for none. A server that refuses a
// connection sends its reason at once, and go-redis loses the reason.
func plainReply(ctx context.Context, addr string) string {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return ""
	}
	defer conn.Close()
	end, _ := ctx.Deadline()
	if conn.SetDeadline(end) != nil {
		return ""
	}
	_, _ = io.WriteString(conn, "PING\r\n") // a server that has closed the connection may have sent its reason before
	reply := make([]byte, 256)
	n, _ := conn.Read(reply)
	return string(reply[:n])
}

// speaksTLS reports whether a server takes part in a TLS handshake, also in a failed one.
func speaksTLS(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // nothing is sent or read: the handshake is the question
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil || strings.Contains(err.Error(), "remote error: tls: ")
}

// refusedBySentinels finds sentinels that refuse their password. A client's error leaves open
// whether a sentinel or the master has refused a password.
func (a Address) refusedBySentinels(ctx context.Context) *Trouble {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	o := a.Sentinel
	refused := make([]error, len(o.SentinelAddrs))
	var asked sync.WaitGroup
	for i, addr := range o.SentinelAddrs {
		one, err := Parse("redis://" + addr)
		if err != nil {
			continue // go-redis has not called it either
		}
		one.One.Username, one.One.Password, one.One.TLSConfig = o.SentinelUsername, o.SentinelPassword, o.TLSConfig
		asked.Go(func() {
			client := one.Client()
			defer client.Close()
			if err := client.Ping(ctx).Err(); isReply(err, "NOAUTH ", "WRONGPASS ") {
				refused[i] = err
			}
		})
	}
	asked.Wait()
	first := slices.IndexFunc(refused, func(err error) bool { return err != nil })
	if first < 0 {
		return nil
	}
	var who []string
	for i, addr := range o.SentinelAddrs {
		if refused[i] != nil {
			who = append(who, addr)
		}
	}
	return &Trouble{Kind: KindSetting, Setting: SettingSentinelPassword, Password: true,
		Text: "the sentinel at " + strings.Join(who, ",") + " " + wanting(refused[first], "a password of its own"),
		Cure: "write the sentinels' own into the URL, &sentinel_password=PASSWORD, with &sentinel_user=USER for a user of its own; the password in front of the host is the master's"}
}
