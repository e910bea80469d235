// Package mask hides what may be secret in settings that are shown: in logs, errors, notifications and printed configurations.
//
// Nothing tells which part of a setting is a secret, so a part that may be one is hidden whole: the path of many a URL is a key.
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

// Echo hides in somebody else's text the parts of a URL that URL hides: servers repeat the path that they do not know.
func Echo(text, of string) string {
	u, err := url.Parse(of)
	if err != nil {
		return text
	}
	password, _ := u.User.Password()
	for _, part := range []string{u.RequestURI(), u.EscapedPath(), u.Path, u.RawQuery, password} {
		if len(part) > 1 {
			text = strings.ReplaceAll(text, part, Text)
		}
	}
	return text
}
