// Package mask hides possible secrets in settings that are shown: in logs, errors, notifications
// and printed configurations.
//
// Nothing shows which part of a setting is a secret, so a part that may be one is hidden whole: the
// path of many a URL is a key.
package mask

import (
	"net/url"
	"slices"
	"strings"
)

// Text stands where a secret would.
const Text = "***"

// URL is a URL up to its host. A URL that cannot be read, or has no host, is hidden whole.
func URL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return Text
	}
	shown := u.Scheme + "://" + u.Host
	if *u == (url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}) && (u.Path == "" || u.Path == "/") {
		return shown + u.Path
	}
	return shown + "/" + Text
}

// Args are the words of a command, of which only the first is shown.
func Args(words []string) []string {
	words = slices.Clone(words)
	for i := range words[min(1, len(words)):] {
		words[i+1] = Text
	}
	return words
}

// Values are the names of a map, with their values hidden.
func Values(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	hidden := make(map[string]string, len(m))
	for name := range m {
		hidden[name] = Text
	}
	return hidden
}

// echoLeast is how long a part of a path or query, or a user, is at least to be hidden, in bytes: keys are longer, and
// shorter ones are in many a word.
const echoLeast = 6

// Echo hides in a server's text the parts of a URL that URL hides, whole and one by one: servers
// repeat an unknown path, or a refused key.
func Echo(text, of string) string {
	u, err := url.Parse(of)
	if err != nil {
		return text
	}
	password, _ := u.User.Password()
	for _, whole := range []string{u.RequestURI(), u.EscapedPath(), u.Path, u.RawQuery, password} {
		if len(whole) > 1 {
			text = strings.ReplaceAll(text, whole, Text)
		}
	}
	parts := []string{u.User.Username()}
	for _, part := range strings.FieldsFunc(u.RequestURI(), func(r rune) bool { return strings.ContainsRune("/?&=;", r) }) {
		plain, bad := url.QueryUnescape(part)
		if bad != nil {
			plain = part
		}
		parts = append(parts, part, plain)
	}
	slices.SortFunc(parts, func(a, b string) int { return len(b) - len(a) }) // one may be within another
	for _, part := range parts {
		if len(part) >= echoLeast {
			text = strings.ReplaceAll(text, part, Text)
		}
	}
	return text
}
