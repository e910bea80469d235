package redisconn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// badFiles finds files of a certificate that cannot be used any more.
func badFiles(a Address, _ string, err error) *Trouble {
	if !errors.As(err, new(*TLSError)) {
		return nil
	}
	return &Trouble{Kind: KindUnreachable, Setting: SettingTLS, Text: "cannot reach Redis at " + a.String() + " with a certificate that holds",
		Cure: "put a certificate and its key there; both are read again for each connection"}
}

// badTLS finds a mismatch between both ends of TLS.
func badTLS(a Address, _ string, err error) *Trouble {
	t := &Trouble{Kind: KindSetting, Setting: SettingTLS, Text: "Redis at " + a.String() + " "}
	authority, name, invalid, plain := x509.UnknownAuthorityError{}, x509.HostnameError{}, x509.CertificateInvalidError{}, tls.RecordHeaderError{}
	switch {
	case errors.As(err, &authority):
		t.Text += "has a certificate of an authority that this machine does not know"
		t.Cure = "name the authority's certificate with ?ca_file=FILE in the URL, or in redis.tls.ca_file for redis.url (in a Go program RootCAs of the client's TLSConfig, everywhere SSL_CERT_FILE)"
	case errors.As(err, &name):
		t.Text += "has a certificate for other names (" + strings.TrimPrefix(name.Error(), "x509: ") + ")"
		t.Cure = "write the address with a name of the certificate, or give that name with ?server_name=NAME in the URL, or in redis.tls.server_name for redis.url"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired: // or not valid yet
		t.Kind, t.Setting, t.Text = KindUnreachable, "", t.Text+"has a certificate that does not hold now"
		t.Cure = "renew it, or set this machine's clock"
	case errors.As(err, &invalid), errors.As(err, new(*tls.CertificateVerificationError)):
		t.Text += "has a certificate that cannot be verified (" + err.Error() + ")"
		t.Cure = "see the certificate with openssl s_client -connect HOST:PORT"
	case errors.As(err, &plain):
		return answeredPlain(a, plain.RecordHeader[:])
	default:
		return remoteAlert(a, err)
	}
	return t
}

// plainServer is a server without TLS that was called with it.
func plainServer(a Address) *Trouble {
	return &Trouble{Kind: KindSetting, Setting: SettingTLS, Text: "Redis at " + a.String() + " does not speak TLS", Cure: "write redis and not rediss"}
}

// answeredPlain is a server that answered a TLS handshake without TLS: a Redis, or a server of another kind.
func answeredPlain(a Address, answer []byte) *Trouble {
	if answer[0] == '-' || answer[0] == '+' {
		return plainServer(a)
	}
	return strangeServer(a, strconv.Quote(string(answer)))
}

// encryptedServer is a server with TLS that was called without it.
func encryptedServer(a Address) *Trouble {
	return &Trouble{Kind: KindSetting, Setting: SettingTLS, Text: "Redis at " + a.String() + " speaks TLS", Cure: "write rediss and not redis"}
}

// remoteAlert finds the server's refusal of a handshake.
func remoteAlert(a Address, err error) *Trouble {
	_, alert, is := strings.Cut(err.Error(), "remote error: tls: ")
	if !is {
		return nil
	}
	t := &Trouble{Kind: KindSetting, Setting: SettingTLS, Text: "Redis at " + a.String() + " refuses the TLS handshake (" + alert + ")"}
	switch {
	case strings.HasPrefix(alert, "expired certificate"):
		t.Kind, t.Text = KindUnreachable, "the certificate that is shown to Redis at "+a.String()+" has expired"
		t.Cure = "renew the files cert_file and key_file of the URL or of redis.tls, which are read again for each connection (in a Go program Certificates of the client's TLSConfig)"
	case strings.HasPrefix(alert, "certificate required"), strings.HasPrefix(alert, "bad certificate"), strings.HasPrefix(alert, "unknown certificate"):
		t.Cure = "give a certificate that it trusts with ?cert_file=FILE&key_file=FILE in the URL, or in redis.tls for redis.url (in a Go program Certificates of the client's TLSConfig)"
	default:
		t.Cure = "compare its tls-protocols and tls-ciphers with this program's, TLS 1.2 and 1.3"
	}
	return t
}

// strangeReply matches go-redis' errors about a reply that is not one of Redis, with the reply.
var strangeReply = regexp.MustCompile(`redis: (?:can't parse[^:]*|invalid reply|unexpected line|unexpected \w+ reply[^:]*): ("(?:[^"\\]|\\.)*")`)

// noRedis finds a server that is no Redis.
func noRedis(a Address, _ string, err error) *Trouble {
	m := strangeReply.FindStringSubmatch(err.Error())
	if m == nil {
		return nil
	}
	return strangeServer(a, m[1])
}

// strangeServer is a server that answers, with the given Go string, unlike a Redis.
func strangeServer(a Address, reply string) *Trouble {
	what := "is no Redis: it answers " + reply[:min(len(reply), 60)]
	if strings.HasPrefix(reply, `"HTTP/`) || strings.HasPrefix(strings.ToLower(reply), `"<!doctype`) || strings.HasPrefix(reply, `"<html`) {
		what = "speaks HTTP, and is no Redis"
	}
	return &Trouble{Kind: KindSetting, Setting: SettingURL, Text: "what listens at " + a.names() + " " + what, Cure: "correct the port or the host"}
}

// unknownCommand matches the refusal of a command that a server does not have, by itself or for a script.
var unknownCommand = regexp.MustCompile("(?i)unknown (?:redis )?command(?: called from (?:lua )?script)?[^'`]*['`]?([A-Za-z|]*)")

// tooOld finds a server that lacks a command.
func tooOld(a Address, _ string, err error) *Trouble {
	m := unknownCommand.FindStringSubmatch(err.Error())
	if m == nil || !isReply(err, "ERR ") {
		return nil
	}
	lacks := "a command"
	if m[1] != "" {
		lacks = "the command " + strings.ToLower(m[1])
	}
	return &Trouble{Kind: KindUnreachable, Text: fmt.Sprintf("Redis at %s lacks %s, which Escapement needs", a.String(), lacks),
		Cure: "use Redis 7 or later, or a server that is compatible with it; and no command may be renamed or disabled there"}
}

// refusedConnection reports whether nothing listens at the address.
func refusedConnection(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT)
}
