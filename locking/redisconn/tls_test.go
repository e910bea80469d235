//go:build unix

package redisconn_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
)

// ping connects as a URL says.
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
	const timeouts = "&dial_timeout=20s&read_timeout=20s"
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
				if err := ping(t, before+query+timeouts); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v; want %q", query, err, want)
				}
			}
		})
	}
}

// TestTLSCertificateIsReadAgain has a client whose certificate is replaced while it runs, as short-lived ones are.
func TestTLSCertificateIsReadAgain(t *testing.T) {
	t.Parallel()
	c := redistest.NewCertificates(t)
	server := redistest.StartTLS(t, c)
	other := redistest.NewCertificates(t) // of an authority that the server does not know
	cert, key := other.Issue(t, "own", "client")
	a, err := redisconn.Parse("rediss://" + server.Addr() + "?ca_file=" + c.CAFile + "&cert_file=" + cert + "&key_file=" + key)
	if err != nil {
		t.Fatal(err)
	}
	client := a.Client()
	defer client.Close()
	if err := client.Ping(t.Context()).Err(); err == nil {
		t.Fatalf("with the certificate of another authority: %v", err)
	}
	for from, to := range map[string]string{c.ClientCertFile: cert, c.ClientKeyFile: key} {
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("with the new certificate: %v", err)
	}
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
