//go:build unix

package redistest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// settings are the arguments of a redis-server that speaks TLS alone, with clients, other servers
// and sentinels, and requires a certificate from each of them.
func (c *Certificates) settings(port int) []string {
	return []string{
		"--port", "0", "--tls-port", strconv.Itoa(port), "--tls-auth-clients", "yes", "--tls-replication", "yes", "--tls-cluster", "yes",
		"--tls-ca-cert-file", c.CAFile, "--tls-cert-file", c.ServerCertFile, "--tls-key-file", c.ServerKeyFile,
	}
}

// options are the settings of a client of such a server.
func (c *Certificates) options(addr string) (*redis.Options, error) {
	authority, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, err
	}
	own, err := tls.LoadX509KeyPair(c.ClientCertFile, c.ClientKeyFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	o := ClientOptions(addr)
	o.TLSConfig = &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}
	return o, nil
}

// StartTLS starts a redis-server that speaks TLS alone, and wants a certificate of its clients, for one test.
func StartTLS(tb TB, c *Certificates, args ...string) *Server {
	tb.Helper()
	return startTLS(tb, ProcessConfig{Dir: tb.TempDir(), Args: args, tls: c})
}

func startTLS(tb TB, cfg ProcessConfig) *Server {
	tb.Helper()
	s, err := StartProcess(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Kill(); err != nil {
			tb.Fatal(err)
		}
	})
	return s
}

// StartTLSSentinel starts a master and a sentinel that watches it, called "main". Both have the
// settings of StartTLS' server.
func StartTLSSentinel(tb TB, c *Certificates) (sentinel, master *Server) {
	tb.Helper()
	master = StartTLS(tb, c)
	dir := tb.TempDir()
	conf := filepath.Join(dir, "sentinel.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, "sentinel monitor %s 127.0.0.1 %d 1\n", masterName, master.cfg.Port), 0o600); err != nil {
		tb.Fatal(err)
	}
	return startTLS(tb, ProcessConfig{Dir: dir, sentinel: conf, tls: c}), master
}

// StartTLSCluster starts a Cluster of one server, which is as StartTLS'.
func StartTLSCluster(tb TB, c *Certificates) *Server {
	tb.Helper()
	port, err := freeNodePort()
	if err != nil {
		tb.Fatal(err)
	}
	s := startTLS(tb, ProcessConfig{Dir: tb.TempDir(), Port: port, tls: c, Args: []string{"--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"}})
	o, err := c.options(s.Addr())
	if err != nil {
		tb.Fatal(err)
	}
	client := redis.NewClient(o)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), standstill)
	defer cancel()
	err = client.Do(ctx, "cluster", "addslotsrange", 0, clusterSlots-1).Err()
	serves := until(ctx, "the cluster serves", func(ctx context.Context) (bool, error) {
		err := client.Get(ctx, "nothing").Err()
		return errors.Is(err, redis.Nil), err
	})
	if err = errors.Join(err, serves); err != nil {
		tb.Fatal(err)
	}
	return s
}
