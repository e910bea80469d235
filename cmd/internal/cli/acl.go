package cli

import (
	"errors"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
)

// deniedCommand finds the command that Redis refuses: "this user has no permissions to run the 'hget' command".
var deniedCommand = regexp.MustCompile(`run the '([^']+)' command`)

// lacking says which right the user of Redis lacks, as ACL SETUSER writes it, where that is why a call was refused; else "".
func lacking(err error, namespace string) string {
	reply := redis.Error(nil)
	if !errors.As(err, &reply) {
		return ""
	}
	text := strings.ToLower(reply.Error())
	denied := strings.Contains(text, "noperm") || strings.Contains(text, "acl failure") || strings.Contains(text, "the user executing the script")
	switch m := deniedCommand.FindStringSubmatch(reply.Error()); {
	case !denied:
		return ""
	case m != nil:
		return "the command " + m[1] + " (+" + strings.ReplaceAll(m[1], " ", "|") + ")"
	case strings.Contains(text, "channel"):
		return "the channels &" + namespace + ":lock-call:*, on a Cluster &{" + namespace + ":lock:*"
	case strings.Contains(text, "key"):
		return "the keys ~{" + namespace + "}:* ~{" + namespace + ":*"
	}
	return "a command that our scripts call"
}
