package cron

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zone rules in the program, for a machine without any

	"github.com/escapement/escapement/jobs/spec"
)

var zonePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+/-]{0,63}$`)

// zones caches zones by name, so that 100,000 jobs do not read a file each. Only existing names are stored, so it stays small.
var zones sync.Map

// loadZone returns the zone called name; "" is UTC. Local is refused, because nodes may differ in it, and so are names that
// only some systems have.
func loadZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	if loc, ok := zones.Load(name); ok {
		return loc.(*time.Location), nil
	}
	if strings.EqualFold(name, "local") || strings.EqualFold(name, "localtime") || strings.EqualFold(name, "posixrules") {
		return nil, fmt.Errorf("time zone %s differs from node to node; write a name such as Europe/Berlin", name)
	}
	if kind, plain, under := strings.Cut(name, "/"); under && (strings.EqualFold(kind, "right") || strings.EqualFold(kind, "posix")) {
		return nil, fmt.Errorf("time zone %q is only on some machines, and under right it counts leap seconds, which no clock here does; write %q", spec.Clip(name), spec.Clip(plain))
	}
	if !zonePattern.MatchString(name) {
		return nil, fmt.Errorf("time zone %q is not a zone name; write one such as Europe/Berlin", spec.Clip(name))
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("time zone %q is not known (%w); write one such as Europe/Berlin", name, err)
	}
	zones.Store(name, loc)
	return loc, nil
}

// zoneFiles are where systems keep the version of their time zone rules: time.LoadLocation reads the rules beside them.
var zoneFiles = []string{"/usr/share/zoneinfo/tzdata.zi", "/usr/share/lib/zoneinfo/tzdata.zi"}

// ZoneData returns the version of the time zone rules that schedules follow, such as 2026a: the system's rules, which come before the rules in
// the program. "": the system has no version, or ZONEINFO names other rules; "built in": the system has no rules.
func ZoneData() string { return zoneData() }

var zoneData = sync.OnceValue(func() string {
	if os.Getenv("ZONEINFO") != "" {
		return ""
	}
	for _, name := range zoneFiles {
		if version := zoneVersion(name); version != "" {
			return version
		}
	}
	if _, err := os.Stat("/usr/share/zoneinfo"); os.IsNotExist(err) {
		return "built in"
	}
	return ""
})

// zoneVersion reads the first line of a tzdata.zi: "# version 2026a".
func zoneVersion(name string) string {
	f, err := os.Open(name) //nolint:gosec // one of zoneFiles
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Scan()
	version, _ := strings.CutPrefix(lines.Text(), "# version ")
	return spec.Clip(strings.TrimPrefix(version, "#"))
}

// CheckZone checks the name of a zone; "" is UTC.
func CheckZone(name string) error {
	_, err := loadZone(name)
	return err
}

// ZoneOf returns the zone of an expression's prefix, or without a prefix the fallback. For a bad prefix it is "", so that the fault is
// reported once, as a fault of the schedule.
func ZoneOf(expr, fallback string) string {
	prefix, _, found, err := cutZone(expr)
	switch {
	case err != nil || found && CheckZone(prefix) != nil:
		return ""
	case found:
		return prefix
	}
	return fallback
}

// agreedZone returns the zone of a schedule from its prefix and its job.
func agreedZone(prefix, zone string, prefixed bool) (*time.Location, error) {
	loc, err := loadZone(zone)
	if err != nil || !prefixed {
		return loc, err
	}
	own, err := loadZone(prefix)
	if err == nil && zone != "" && prefix != zone {
		return nil, fmt.Errorf("schedule names the zone %s and the job names %s; keep one of the two", prefix, zone)
	}
	return own, err
}

// cutZone splits a CRON_TZ= or TZ= prefix from an expression. The parser would panic when nothing follows the name.
func cutZone(expr string) (zone, rest string, found bool, err error) {
	expr = strings.TrimSpace(expr)
	for _, key := range []string{"CRON_TZ=", "TZ="} {
		value, ok := strings.CutPrefix(expr, key)
		if !ok {
			continue
		}
		i := strings.IndexAny(value, " \t\r\n")
		if i <= 0 {
			return "", "", true, fmt.Errorf("schedule %q: %s must be followed by a zone, a space and the fields",
				spec.Clip(expr), key)
		}
		return value[:i], value[i:], true, nil
	}
	return "", expr, false, nil
}
