package locks

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
)

// sent counts the commands that all clients have written.
var sent atomic.Int64

// dial connects and counts.
func dial(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return counted{c}, nil
}

// counted is a connection whose commands are counted: each begins with a '*' at
// the start of a line. None of the values that are sent here looks so.
type counted struct{ net.Conn }

func (c counted) Write(p []byte) (int, error) {
	n := bytes.Count(p, []byte("\n*"))
	if len(p) > 0 && p[0] == '*' {
		n++
	}
	sent.Add(int64(n))
	return c.Conn.Write(p)
}
