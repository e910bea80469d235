package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Certificates are an authority of a test's own, and the certificates that it has signed, as files
// in PEM.
type Certificates struct {
	CAFile string // the authority

	ServerCertFile, ServerKeyFile string // for "localhost" and the loopback addresses, of servers and between them
	ClientCertFile, ClientKeyFile string // for clients

	dir string
	ca  *x509.Certificate
	key *ecdsa.PrivateKey
}

// NewCertificates makes an authority in a folder of the test. The files can be read by every user, because a server may run as
// another one.
func NewCertificates(tb TB) *Certificates {
	tb.Helper()
	c := &Certificates{dir: tb.TempDir()}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	c.ca = &x509.Certificate{Subject: pkix.Name{CommonName: "the authority of a test"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	c.CAFile, _ = c.issue(tb, "ca", c.ca, key)
	c.key = key
	c.ServerCertFile, c.ServerKeyFile = c.Issue(tb, "server", "localhost")
	c.ClientCertFile, c.ClientKeyFile = c.Issue(tb, "client", "client")
	return c
}

// Issue signs a certificate for a host name and the loopback addresses, and returns the files of
// the certificate and its key. A second certificate of the same name takes the place of the first.
func (c *Certificates) Issue(tb TB, name, host string) (certFile, keyFile string) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return c.issue(tb, name, &x509.Certificate{
		Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, key)
}

// issue signs a certificate, the authority's own with its own key, and writes it and its key.
func (c *Certificates) issue(tb TB, name string, of *x509.Certificate, key *ecdsa.PrivateKey) (certFile, keyFile string) {
	tb.Helper()
	fail := func(err error) {
		if err != nil {
			tb.Fatal(err)
		}
	}
	signer := c.key
	if signer == nil {
		signer = key
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	fail(err)
	of.SerialNumber, of.NotBefore, of.NotAfter = serial, time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	certificate, err := x509.CreateCertificate(rand.Reader, of, c.ca, &key.PublicKey, signer)
	fail(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	fail(err)
	write := func(kind, suffix string, der []byte) string {
		file := filepath.Join(c.dir, name+suffix)
		fail(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o644)) //nolint:gosec // G306: of a test, for a server of another user
		return file
	}
	return write("CERTIFICATE", ".pem", certificate), write("PRIVATE KEY", "-key.pem", private)
}
