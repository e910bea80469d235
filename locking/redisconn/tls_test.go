//go:build unix

package redisconn_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
)

// ping connects to a URL.
func ping(t *testing.T, text string) error {
	t.Helper()
	a, err := redisconn.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	c := a.Client()
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return c.Set(ctx, "a", "b", 0).Err()
}

// TestTLS connects to real servers that speak TLS alone and want a certificate of each client: one server, sentinels and their
// master, a Cluster.
func TestTLS(t *testing.T) {
	t.Parallel()
	c := redistest.NewCertificates(t)
	trust, show := "ca_file="+c.CAFile, "cert_file="+c.ClientCertFile+"&key_file="+c.ClientKeyFile
	one := redistest.StartTLS(t, c)
	sentinel, _ := redistest.StartTLSSentinel(t, c)
	for name, before := range map[string]string{
		"one":      "rediss://" + one.Addr() + "/0?",
		"sentinel": "rediss+sentinel://" + sentinel.Addr() + "/0?master_name=main&",
		"cluster":  "rediss+cluster://" + redistest.StartTLSCluster(t, c).Addr() + "/?",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, query := range []string{trust + "&" + show, trust + "&" + show + "&server_name=localhost"} {
				if err := ping(t, before+query+timeouts); err != nil {
					t.Errorf("%s: %v", query, err)
				}
			}
			for query, want := range map[string]string{
				show:  "signed by unknown authority",
				trust: "certificate required",
				trust + "&" + show + "&server_name=other": "not other",
			} {
				err := ping(t, before+query+timeouts)
				for tries := 0; closedEarly(err) && tries < 100; tries++ {
					err = ping(t, before+query+timeouts)
				}
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v; want %q", query, err, want)
				}
			}
		})
	}
}

// timeouts are long enough for a busy machine.
const timeouts = "&dial_timeout=20s&read_timeout=20s"

// closedEarly reports whether the server had closed the connection before the client read why.
func closedEarly(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "connection reset by peer") || strings.Contains(err.Error(), "broken pipe"))
}

// TestTLSCertificateIsReadAgain has a client whose certificate is replaced while it runs, as short-lived ones are.
func TestTLSCertificateIsReadAgain(t *testing.T) {
	t.Parallel()
	c := redistest.NewCertificates(t)
	server := redistest.StartTLS(t, c)
	other := redistest.NewCertificates(t) // of an authority that the server does not trust
	cert, key := other.Issue(t, "own", "client")
	a, err := redisconn.Parse("rediss://" + server.Addr() + "?ca_file=" + c.CAFile + "&cert_file=" + cert + "&key_file=" + key + timeouts)
	if err != nil {
		t.Fatal(err)
	}
	client := a.Client()
	defer client.Close()
	if err := client.Ping(t.Context()).Err(); err == nil {
		t.Fatalf("with the certificate of another authority: %v", err)
	}
	replace := func(from, to string) {
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	connect := func() error { // anew
		client := a.Client()
		defer client.Close()
		return client.Ping(t.Context()).Err()
	}
	replace(c.ClientCertFile, cert)
	replace(c.ClientKeyFile, key)
	if err := connect(); err != nil {
		t.Errorf("with the new certificate: %v", err)
	}
	next, nextKey := c.Issue(t, "next", "client")
	replace(next, cert)
	if err := connect(); err != nil {
		t.Errorf("between the replacement of the certificate and that of its key: %v", err)
	}
	replace(nextKey, key)
	replace("/dev/null", cert)
	if err := connect(); err != nil {
		t.Errorf("with an empty certificate: %v", err)
	}
}

// TestTLSCertificateExpired has a certificate that has expired, and files that do not fit: connections fail until they do.
func TestTLSCertificateExpired(t *testing.T) {
	t.Parallel()
	c := redistest.NewCertificates(t)
	server := redistest.StartTLS(t, c)
	cert, key := expired(t)
	a, err := redisconn.Parse("rediss://" + server.Addr() + "?ca_file=" + c.CAFile + "&cert_file=" + cert + "&key_file=" + key + timeouts)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	client := a.Client()
	defer client.Close()
	raw := redisconn.Classify("ping", client.Ping(t.Context()).Err())
	for _, err := range []error{a.Explain(t.Context(), "", raw), redisconn.Explain(client, "", raw)} {
		if !errors.Is(err, locking.ErrUnreachable) || !strings.Contains(err.Error(), server.Addr()+" with a certificate that holds") || !strings.Contains(err.Error(), key) {
			t.Errorf("got %v", err)
		}
	}
}

// expired makes a certificate that has expired, and its key.
func expired(t *testing.T) (cert, key string) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(-time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, own.Public(), own)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// TestTLSFaults wants an error that names the setting and the file.
func TestTLSFaults(t *testing.T) {
	t.Parallel()
	c := redistest.NewCertificates(t)
	other := redistest.NewCertificates(t)
	for query, want := range map[string]string{
		"ca_file=/no/such":              "has a ca_file that cannot be read: stat /no/such",
		"ca_file=" + c.ClientKeyFile:    "has a ca_file that holds no certificate in PEM",
		"ca_file=/dev/zero":             "has a ca_file that cannot be read",
		"cert_file=" + c.ClientCertFile: "has a cert_file that has no key; name it with key_file",
		"key_file=" + c.ClientKeyFile:   "has a key_file that belongs to no certificate; name it with cert_file",
		"cert_file=" + c.ClientCertFile + "&key_file=" + other.ClientKeyFile:      "has a cert_file that does not go with its key_file",
		"cert_file=" + c.ClientCertFile + "&key_file=/no/such":                    "has a key_file that cannot be read",
		"ca_file=" + c.CAFile + "&cert_file=/no/such&key_file=" + c.ClientKeyFile: "has a cert_file that cannot be read",
	} {
		for _, before := range []string{"rediss://h/0?", "rediss+cluster://h/?", "rediss+sentinel://h/0?master_name=m&"} {
			if _, err := redisconn.Parse(before + query); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %q", before+query, err, want)
			}
		}
	}
	for _, before := range []string{"redis://h/0?", "unix:///s?", "redis+cluster://h/?", "redis+sentinel://h/0?master_name=m&"} {
		if _, err := redisconn.Parse(before + "ca_file=" + c.CAFile); err == nil || !strings.Contains(err.Error(), "write rediss:// in place of redis://") {
			t.Errorf("%s: %v", before, err)
		}
	}
}
