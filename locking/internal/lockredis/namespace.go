package lockredis

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/escapement/escapement/locking"
)

// CheckNamespace returns an *locking.InputError of Config.Namespace unless a lock's
// keys can begin with it: they are called "{" + namespace + between + name + "}",
// and no lock of another namespace is to have the same. Braces would put them
// apart on a Cluster.
func CheckNamespace(namespace, between string) error {
	refuse := func(format string, args ...any) error {
		return &locking.InputError{Field: "Config.Namespace", Why: fmt.Sprintf("is %q; ", namespace) + fmt.Sprintf(format, args...)}
	}
	if strings.ContainsFunc(namespace, func(r rune) bool { return r == '{' || r == '}' || unicode.IsControl(r) }) {
		return refuse("braces would put a lock's keys apart on a Cluster: use letters, digits and dashes")
	}
	if at := strings.Index(namespace+between, between); at < len(namespace) {
		return refuse("its locks could have the keys of others in namespace %q: leave out %q", namespace[:at], strings.TrimSuffix(between, ":"))
	}
	return nil
}
