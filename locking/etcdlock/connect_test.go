//go:build unix

package etcdlock_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/etcdlock"
)

// TestPassword uses a cluster with users: the lock user may use the keys of its prefix only.
func TestPassword(t *testing.T) {
	const password = "correct horse"
	s := startServers(t, 1)[0]
	raw := connect(t, etcdlock.ClientConfig{Endpoints: endpoints(s)})
	ctx := t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(raw.UserAdd(ctx, "root", "root"))
	must(raw.UserGrantRole(ctx, "root", "root"))
	must(raw.RoleAdd(ctx, "locks"))
	must(raw.RoleGrantPermission(ctx, "locks", "mine/", clientv3.GetPrefixRangeEnd("mine/"), clientv3.PermissionType(clientv3.PermReadWrite)))
	must(raw.UserAdd(ctx, "locker", password))
	must(raw.UserGrantRole(ctx, "locker", "locks"))
	must(raw.AuthEnable(ctx))

	_, err := etcdlock.Connect(etcdlock.ClientConfig{Endpoints: endpoints(s), Username: "locker", Password: "wrong " + password})
	if err == nil || strings.Contains(err.Error(), password) {
		t.Errorf("a wrong password: %v", err)
	}
	c := connect(t, etcdlock.ClientConfig{Endpoints: endpoints(s), Username: "locker", Password: password})
	l := etcdlock.New(c, etcdlock.Config{Prefix: "mine"})
	defer l.Close()
	lease := acquire(t, l, locking.Options{})
	if err := lease.Extend(ctx); err != nil {
		t.Errorf("extend: %v", err)
	}
	release(t, lease)

	others := etcdlock.New(c, etcdlock.Config{Prefix: "others"})
	defer others.Close()
	if _, err := others.Try(ctx, "a", locking.Options{}); err == nil || errors.Is(err, locking.ErrUnreachable) || strings.Contains(err.Error(), password) {
		t.Errorf("a prefix without permission: %v; want etcd's refusal", err)
	}
	anonymous := locker(t, "mine", s)
	if _, err := anonymous.Try(ctx, "a", locking.Options{}); err == nil || errors.Is(err, locking.ErrUnreachable) {
		t.Errorf("without a password: %v; want etcd's refusal", err)
	}
}

// TestTLS uses a server with a certificate of its own.
func TestTLS(t *testing.T) {
	ports := freePorts(t, 2)
	dir := t.TempDir()
	cert, key, roots := makeCertificate(t, dir)
	s := &server{dir: dir, client: fmt.Sprintf("https://127.0.0.1:%d", ports[0]), tls: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	s.args = []string{
		"--name", "e", "--data-dir", filepath.Join(dir, "data"), "--cert-file", cert, "--key-file", key,
		"--listen-client-urls", s.client, "--advertise-client-urls", s.client,
		"--listen-peer-urls", fmt.Sprintf("http://127.0.0.1:%d", ports[1]), "--logger", "zap", "--log-level", "warn",
	}
	s.start(t)
	t.Cleanup(func() { s.kill(t) })
	s.ready(t)
	l := etcdlock.New(connect(t, etcdlock.ClientConfig{Endpoints: endpoints(s), TLS: s.tls}), etcdlock.Config{})
	defer l.Close()
	release(t, acquire(t, l, locking.Options{}))
	untrusting := locker(t, "", s)
	if _, err := untrusting.Try(t.Context(), "a", locking.Options{}); !errors.Is(err, locking.ErrUnreachable) {
		t.Errorf("with a certificate that the client does not know: %v", err)
	}
}

// makeCertificate writes a certificate for 127.0.0.1 and its key.
func makeCertificate(t *testing.T, dir string) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, content := range map[string][]byte{certFile: certPEM, keyFile: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile, roots
}
