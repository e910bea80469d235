package redisconn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/jobs/boundedfile"
)

// maxPEM bounds a file of certificates or a key, in bytes.
const maxPEM = 1 << 20

// The settings of a TLS, as a URL and TLSError name them.
const (
	caFile     = "ca_file"
	certFile   = "cert_file"
	keyFile    = "key_file"
	serverName = "server_name"
)

// TLS holds the settings of a connection with TLS, beside the scheme rediss. The zero value trusts
// the authorities of the system, shows no certificate, and expects the host's name in the server's.
type TLS struct {
	CAFile     string // PEM: the authorities to trust, in place of the system's
	CertFile   string // PEM: the client's certificate; read again for each connection, as KeyFile; the last pair while the two do not fit
	KeyFile    string // PEM: the key of CertFile
	ServerName string // expected in the certificate of each server, in place of the host's name
}

// TLSError is a setting of a TLS that cannot be used.
type TLSError struct {
	Setting string // "ca_file", "cert_file", "key_file" or "server_name"
	Err     error
}

// Error names the setting.
func (e *TLSError) Error() string { return fmt.Sprintf("has a %s that %v", e.Setting, e.Err) }

// Unwrap returns the fault of the setting, without its name.
func (e *TLSError) Unwrap() error { return e.Err }

// Config returns a configuration for clients. It reads the files. The error is a *TLSError.
func (t TLS) Config() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if err := t.apply(cfg); err != nil {
		return nil, err
	}
	return cfg, nil
}

// apply sets cfg to the settings of t.
func (t TLS) apply(cfg *tls.Config) error {
	if t.ServerName != "" {
		cfg.ServerName = t.ServerName
	}
	if t.CAFile != "" {
		pem, err := readPEM(caFile, t.CAFile)
		if err != nil {
			return err
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return &TLSError{caFile, fmt.Errorf("holds no certificate in PEM: %s", t.CAFile)}
		}
	}
	if t.CertFile == "" && t.KeyFile == "" {
		return nil
	}
	first, err := t.certificate()
	if err != nil {
		return err
	}
	cfg.GetClientCertificate = t.renewed(first)
	return nil
}

// renewed reads the certificate for each connection: certificates are short-lived, and nodes are
// not. While the two files do not match, because only one is replaced yet, connections get the last
// matching pair, until its certificate expires.
func (t TLS) renewed(first *tls.Certificate) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	var good atomic.Pointer[tls.Certificate]
	good.Store(first)
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := t.certificate()
		if err == nil {
			good.Store(pair)
			return pair, nil
		}
		//guard:certificate-last P8 a node keeps its Redis while a renewal has replaced one file of two
		if last := good.Load(); time.Now().Before(last.Leaf.NotAfter) {
			return last, nil
		}
		return nil, err
	}
}

// certificate reads the client's certificate.
func (t TLS) certificate() (*tls.Certificate, error) {
	switch {
	case t.CertFile == "":
		return nil, &TLSError{keyFile, errors.New("belongs to no certificate; name it with cert_file")}
	case t.KeyFile == "":
		return nil, &TLSError{certFile, errors.New("has no key; name it with key_file")}
	}
	certificate, err := readPEM(certFile, t.CertFile)
	if err != nil {
		return nil, err
	}
	key, err := readPEM(keyFile, t.KeyFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, &TLSError{certFile, fmt.Errorf("does not go with its key_file: %s, %s: %w", t.CertFile, t.KeyFile, err)}
	}
	return &pair, nil
}

func readPEM(setting, name string) ([]byte, error) {
	data, err := boundedfile.Read(name, maxPEM)
	if err != nil {
		return nil, &TLSError{setting, fmt.Errorf("cannot be read: %w", err)}
	}
	return data, nil
}

// SetTLS changes how a connects. It reads the files of t. The error is a *TLSError, or an error
// about an address without TLS.
func (a Address) SetTLS(t TLS) error {
	if t == (TLS{}) {
		return nil
	}
	cfg := a.TLSConfig()
	if cfg == nil {
		return errors.New("has a scheme without TLS; write rediss:// in place of redis://")
	}
	return t.apply(cfg)
}

// TLSConfig returns the options of a's connections, to sentinels too; nil without TLS.
func (a Address) TLSConfig() *tls.Config {
	switch {
	case a.Cluster != nil:
		return a.Cluster.TLSConfig
	case a.Sentinel != nil:
		return a.Sentinel.TLSConfig
	case a.One != nil:
		return a.One.TLSConfig
	}
	return nil
}

// SetUser sets the user and password of a's Redis, unless a has some. It reports whether it did.
func (a Address) SetUser(user, password string) bool {
	var u, p *string
	switch {
	case a.Cluster != nil:
		u, p = &a.Cluster.Username, &a.Cluster.Password
	case a.Sentinel != nil:
		u, p = &a.Sentinel.Username, &a.Sentinel.Password
	case a.One != nil:
		u, p = &a.One.Username, &a.One.Password
	default:
		return false
	}
	if *u != "" || *p != "" {
		return false
	}
	*u, *p = user, password
	return true
}

// cutTLS returns the URL without the settings of a TLS in its query, and these.
func cutTLS(text string) (rest string, t TLS) {
	before, query, _ := strings.Cut(text, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return text, TLS{} // refused later
	}
	found := false
	for name, to := range map[string]*string{caFile: &t.CAFile, certFile: &t.CertFile, keyFile: &t.KeyFile, serverName: &t.ServerName} {
		if values.Has(name) {
			*to, found = values.Get(name), true
			values.Del(name)
		}
	}
	switch {
	case !found:
		return text, TLS{}
	case len(values) == 0:
		return before, t
	}
	return before + "?" + values.Encode(), t
}
