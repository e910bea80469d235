package redisconn

import (
	"cmp"
	"errors"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
)

// deniedCommand finds the command that Redis refuses: "this user has no permissions to run the 'hget' command".
var deniedCommand = regexp.MustCompile(`run the '([^']+)' command`)

// lackingRights finds the right that the server's user lacks.
func lackingRights(a Address, namespace string, err error) *Trouble {
	lacks := lacking(err, cmp.Or(namespace, "NAMESPACE"))
	if lacks == "" {
		return nil
	}
	return &Trouble{Kind: KindRights, Text: "the user of Redis at " + a.String() + " lacks " + lacks, Cure: "give it that right; docs/operations.md has all that a user needs"}
}

// lacking is the right that the server's user lacks, as ACL SETUSER writes it; "" where that is not why a call was refused.
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
