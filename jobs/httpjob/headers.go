package httpjob

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
)

const (
	// prefix begins the headers of a run, and only these.
	prefix = "Escapement-"
	// tokenHeader carries the fencing token.
	tokenHeader = "Fencing-Token"
)

type header struct{ name, value string }

// runHeaders returns the headers of a run. Without a tick or a parameter there is no header for it.
func runHeaders(run *jobs.Run) []header {
	list := []header{
		{prefix + "Job", run.Job()},
		{prefix + "Run", run.ID()},
		{prefix + "Attempt", strconv.Itoa(run.Attempt())},
		{prefix + "Try", strconv.Itoa(run.Try())},
		{prefix + "Node", run.Node()},
		{prefix + "Shard", strconv.Itoa(run.Shard())},
		{prefix + "Shards", strconv.Itoa(run.Shards())},
		{prefix + "Trigger", run.Trigger().String()},
		{tokenHeader, strconv.FormatInt(run.Token(), 10)},
	}
	if t := run.Tick(); !t.IsZero() {
		list = append(list, header{prefix + "Tick", t.Format(spec.TimeLayout)},
			header{prefix + "Tick-Ms", strconv.FormatInt(t.UnixMilli(), 10)})
	}
	if p := run.Param(); p != "" {
		list = append(list, header{prefix + "Param", p})
	}
	return list
}

// connectionHeaders belong to a connection, or to the encoding of the body: the client sets them.
var connectionHeaders = map[string]bool{
	"Connection": true, "Content-Length": true, "Keep-Alive": true, "Proxy-Authenticate": true,
	"Proxy-Authorization": true, "Proxy-Connection": true, "Te": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true,
}

var (
	headerPattern = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}$")
	hostPattern   = regexp.MustCompile(`^[A-Za-z0-9._:\[\]-]{1,259}$`)
)

// headerFault returns the fault of a header of the options, or "". It does not show the value.
func headerFault(name, value string) string {
	key := http.CanonicalHeaderKey(name)
	switch {
	case !headerPattern.MatchString(name):
		return "is not the name of a header; use letters, digits and -"
	case strings.HasPrefix(key, prefix) || key == tokenHeader:
		return "is set by the run; use another name"
	case connectionHeaders[key]:
		return "belongs to the connection and is set by the client; remove it"
	case key == "Host" && !hostPattern.MatchString(value):
		return "is not HOST or HOST:PORT"
	case !printable(value):
		return "holds a line end or another control character, which no header can carry"
	}
	return ""
}

// printable reports whether a header can hold the value: tabs, but no other control character.
func printable(value string) bool {
	return strings.IndexFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) < 0
}
