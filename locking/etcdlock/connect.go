package etcdlock

import (
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
)

// ClientConfig is how Connect reaches a cluster.
type ClientConfig struct {
	Endpoints []string    // of all members: host:port, or URLs. Required
	Username  string      // empty: no authentication
	Password  string      // of Username; never logged
	TLS       *tls.Config // nil: none, unless an endpoint's URL is https

	// DialOptions are added to Connect's own options of gRPC, for a dialer or an interceptor.
	// Default none.
	DialOptions []grpc.DialOption
}

// Connect returns a client for New. It does not wait for the cluster, except to log in with a Username, for five seconds at
// most: then the error wraps locking.ErrUnreachable when no member answers. The caller closes the client.
//
// The client notices in a few seconds that a member is silent, and connects again within a second
// of its return. It logs nothing: failures are in the errors of the calls.
func Connect(cfg ClientConfig) (*clientv3.Client, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: cfg.Endpoints, Username: cfg.Username, Password: cfg.Password, TLS: cfg.TLS,
		DialTimeout:          5 * time.Second, // of the login
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 2 * time.Second, // the kernel gives up a connection whose data is not acknowledged, too
		Logger:               zap.NewNop(),
		DialOptions: append([]grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: time.Second,
		})}, cfg.DialOptions...),
	})
	if code := codeOf(err); code == codes.DeadlineExceeded || code == codes.Unavailable {
		return nil, explain("connect to "+strings.Join(cfg.Endpoints, ","), err)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return c, nil
}
