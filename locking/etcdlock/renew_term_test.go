//go:build unix

package etcdlock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/escapement/escapement/locking"
)

// staleLeader makes keep-alives look as if a leader of an earlier term had answered them.
type staleLeader struct{ on atomic.Bool }

type staleStream struct {
	grpc.ClientStream
	stale *staleLeader
}

func (s *staleLeader) intercept(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, cc, method, o...)
	return &staleStream{stream, s}, err
}

func (s *staleStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if reply, is := m.(*pb.LeaseKeepAliveResponse); is && err == nil && s.stale.on.Load() {
		reply.Header.RaftTerm--
	}
	return err
}

// TestStaleLeader: a keep-alive that was answered by a replaced leader is no renewal.
func TestStaleLeader(t *testing.T) {
	s := startServers(t, 1)[0]
	prefix := newPrefix()
	n := newNetwork(prefix)
	var stale staleLeader
	cfg := n.client(s)
	cfg.DialOptions = append(cfg.DialOptions, grpc.WithChainStreamInterceptor(stale.intercept))
	d := driverFor(t, prefix, n, cfg)
	r := locking.Request{Name: "a", Owner: "o", TTL: 15 * time.Second}
	g, err := d.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	renewals := []locking.Renewal{{Name: "a", Owner: "o", Token: g.Token, TTL: g.TTL}, {Name: "a", Owner: "x", Token: g.Token, TTL: g.TTL}}
	for _, on := range []bool{true, false} {
		stale.on.Store(on)
		answers, err := d.Renew(t.Context(), renewals)
		want := locking.Renewed
		if on {
			want = locking.Unknown
		}
		if len(answers) != 2 || answers[0] != want || answers[1] != locking.Gone || errors.Is(err, locking.ErrUnreachable) != on {
			t.Errorf("stale %t: renewals were answered %v, %v", on, answers, err)
		}
		if _, err := d.Acquire(t.Context(), r); errors.Is(err, locking.ErrUnreachable) != on {
			t.Errorf("stale %t: the same owner acquires once more: %v", on, err)
		}
	}
}
