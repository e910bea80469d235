package redislock

import (
	"strings"

	"github.com/escapement/escapement/locking/redisconn"
)

// Changed returns the scripts in which old stands with another text in its place, by the digests of what they were.
func Changed(old, text string) map[string]string {
	changed := make(map[string]string)
	for _, s := range []*redisconn.Script{acquireScript, releaseScript} {
		if strings.Contains(s.Source(), old) {
			changed[s.Hash()] = strings.Replace(s.Source(), old, text, 1)
		}
	}
	if len(changed) == 0 {
		panic("no script has " + old)
	}
	return changed
}

// WithPatience returns the scripts as they would be with another patience, in ms.
func WithPatience(ms int64) map[string]string { return Changed(numbers(patience), numbers(ms)) }
