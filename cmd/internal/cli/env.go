package cli

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/escapement/escapement/jobs/execjob"
	"github.com/escapement/escapement/jobs/spec"
)

// envPrefix starts the name of every variable read.
const envPrefix = "ESCAPEMENT_"

// maxSecret bounds a secret's file, in bytes.
const maxSecret = 64 << 10

// leaf is one setting outside the jobs, which have no variables.
type leaf struct {
	setting
	path string // "redis.url"
}

// env is the setting's variable: ESCAPEMENT_REDIS_URL.
func (l leaf) env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(l.path, ".", "_"))
}

// leaves lists the settings of a configuration that hold one value, a list or a map.
func leaves(c *Config) []leaf { return sectionLeaves("", reflect.ValueOf(c).Elem()) }

func sectionLeaves(path string, section reflect.Value) (list []leaf) {
	for _, s := range settings(section) {
		at := join(path, s.key)
		switch {
		case s.value.Kind() == reflect.Slice && s.value.Type().Elem().Kind() == reflect.Struct: // jobs and targets have no variables
		case s.value.Kind() == reflect.Map && s.value.Type().Elem().Kind() != reflect.String: // nor have calendars and handlers
		case s.value.Kind() == reflect.Struct:
			list = append(list, sectionLeaves(at, s.value)...)
		default:
			list = append(list, leaf{setting: s, path: at})
		}
	}
	return list
}

// settingNamed returns the one path outside the jobs that ends in this key, or "".
func settingNamed(key string) string {
	found := ""
	for _, l := range leaves(new(Config)) {
		if _, last, ok := cutLast(l.path); ok && last == key {
			if found != "" {
				return ""
			}
			found = l.path
		}
	}
	return found
}

func cutLast(path string) (section, key string, ok bool) {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

// applyEnv sets the values of variables. A secret may be in a file instead, named by the variable
// with _FILE appended. An empty variable counts as given, but not beside that file.
func applyEnv(c *Config, env map[string]string, from origins, faults *faultList) {
	for _, l := range leaves(c) {
		name := l.env()
		text, ok := env[name]
		if l.secret {
			var err error
			if name, text, ok, err = secret(env, name); err != nil {
				faults.add(place{name: name}, l.path, "%v", err)
				continue
			}
		}
		if !ok {
			continue
		}
		from.from(l.path, name)
		if err := setFlat(l.value, l.words, text); err != nil {
			faults.add(place{name: name}, l.path, "%v", err)
		}
	}
}

// secret returns the value of a variable, or the text of the file that NAME_FILE names, without the
// line end of an editor, and which of the two variables was used. An empty variable beside the
// other one counts as not set.
func secret(env map[string]string, name string) (from, text string, given bool, err error) {
	path := env[name+"_FILE"]
	text, given = env[name]
	switch {
	case path == "":
		return name, text, given, nil
	case text != "":
		return name, "", true, fmt.Errorf("%s_FILE is set too; keep one of them", name)
	}
	from = name + "_FILE"
	data, err := readLimited(path, maxSecret)
	if err != nil {
		return from, "", true, fmt.Errorf("%s: %w", path, err)
	}
	return from, strings.TrimRight(string(data), "\r\n"), true, nil
}

// ofService matches the variables that Kubernetes sets in every pod for a service named escapement
// or escapement-something.
var ofService = regexp.MustCompile(`^ESCAPEMENT_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// refuseUnknown adds a fault for each unknown variable with our prefix.
func refuseUnknown(env map[string]string, faults *faultList) {
	known := []string{authorVariable, apiVariable, apiTokenVariable, apiTokenVariable + "_FILE", tokenVariable, lockVariable, moveFromVariable, moveFromVariable + "_FILE", moveToVariable, moveToVariable + "_FILE"}
	for _, l := range leaves(new(Config)) {
		known = append(known, l.env())
		if l.secret {
			known = append(known, l.env()+"_FILE")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !strings.HasPrefix(name, envPrefix) || slices.Contains(known, name) || execjob.Sets(name) || ofService.MatchString(name) {
			continue
		}
		faults.add(place{name: name}, name, "no such variable%s; `escapement config print` shows the settings, and a variable is "+
			"%s and the path in capitals", spec.DidYouMean(name, known), envPrefix)
	}
}
