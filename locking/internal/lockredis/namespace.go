package lockredis

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/escapement/escapement/locking"
)

// CheckNamespace returns an *locking.InputError for Config.Namespace unless it can begin a lock's keys, which are
// "{" + namespace + infix + name + "}". No lock of another namespace may have the same key, and braces would spread a lock's
// keys over a Cluster.
func CheckNamespace(namespace, infix string) error {
	refuse := func(format string, args ...any) error {
		return &locking.InputError{Field: "Config.Namespace", Why: fmt.Sprintf("is %q; ", namespace) + fmt.Sprintf(format, args...)}
	}
	if strings.ContainsFunc(namespace, func(r rune) bool { return r == '{' || r == '}' || unicode.IsControl(r) }) {
		return refuse("braces would put a lock's keys into several slots of a Cluster: use letters, digits and dashes")
	}
	if at := strings.Index(namespace+infix, infix); at < len(namespace) {
		return refuse("its locks could have the keys of others in namespace %q: leave out %q", namespace[:at], strings.TrimSuffix(infix, ":"))
	}
	return nil
}
