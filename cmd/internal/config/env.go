package config

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

// EnvPrefix starts the name of every variable read.
const EnvPrefix = "ESCAPEMENT_"

// maxSecret bounds a secret's file, in bytes.
const maxSecret = 64 << 10

// Leaf is one setting outside the jobs, which have no variables.
type Leaf struct {
	setting
	Path string // "redis.url"
}

// Env is the setting's variable: ESCAPEMENT_REDIS_URL.
func (l Leaf) Env() string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(l.Path, ".", "_"))
}

// Leaves lists the settings of a configuration that hold one value, a list or a map.
func Leaves(c *Config) []Leaf { return sectionLeaves("", reflect.ValueOf(c).Elem()) }

func sectionLeaves(path string, section reflect.Value) (list []Leaf) {
	for _, s := range settings(section) {
		at := join(path, s.key)
		switch {
		case s.value.Kind() == reflect.Slice && s.value.Type().Elem().Kind() == reflect.Struct: // jobs and targets have no variables
		case s.value.Kind() == reflect.Map && s.value.Type().Elem().Kind() != reflect.String: // nor have calendars and handlers
		case s.value.Kind() == reflect.Struct:
			list = append(list, sectionLeaves(at, s.value)...)
		default:
			list = append(list, Leaf{setting: s, Path: at})
		}
	}
	return list
}

// settingNamed returns the one path outside the jobs that ends in this key, or "".
func settingNamed(key string) string {
	found := ""
	for _, l := range Leaves(new(Config)) {
		if _, last, ok := cutLast(l.Path); ok && last == key {
			if found != "" {
				return ""
			}
			found = l.Path
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
func applyEnv(c *Config, env map[string]string, from origins, faults *Faults) {
	for _, l := range Leaves(c) {
		name := l.Env()
		text, ok := env[name]
		if l.Secret {
			var err error
			if name, text, ok, err = Secret(env, name); err != nil {
				faults.Add(Place{Name: name}, l.Path, "%v", err)
				continue
			}
		}
		if !ok {
			continue
		}
		from.from(l.Path, name)
		if err := setFlat(l.value, l.words, text); err != nil {
			faults.Add(Place{Name: name}, l.Path, "%v", err)
		}
	}
}

// Secret returns the value of a variable, or the text of the file that NAME_FILE names, without the
// line end of an editor, and which of the two variables was used. An empty variable beside the
// other one counts as not set.
func Secret(env map[string]string, name string) (from, text string, given bool, err error) {
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

// RefuseUnknown adds a fault for each unknown variable with our prefix.
func RefuseUnknown(env map[string]string, faults *Faults) {
	known := []string{AuthorVariable, APIVariable, APITokenVariable, APITokenVariable + "_FILE", TokenVariable, LockVariable, MoveFromVariable, MoveFromVariable + "_FILE", MoveToVariable, MoveToVariable + "_FILE"}
	for _, l := range Leaves(new(Config)) {
		known = append(known, l.Env())
		if l.Secret {
			known = append(known, l.Env()+"_FILE")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !strings.HasPrefix(name, EnvPrefix) || slices.Contains(known, name) || execjob.Sets(name) || ofService.MatchString(name) {
			continue
		}
		faults.Add(Place{Name: name}, name, "no such variable%s; `escapement config print` shows the settings, and a variable is "+
			"%s and the path in capitals", spec.DidYouMean(name, known), EnvPrefix)
	}
}

// companions are settings of the servers that other settings name: credentials and TLS.
var companions = []struct {
	servers  func(*Config) string // "" names none
	settings []string             // paths; also the paths below them
}{
	{func(c *Config) string { return c.Redis.servers() }, []string{"redis.tls", "redis.sentinel_user", "redis.sentinel_password"}},
	{func(c *Config) string { return c.Locks.store() }, locksCompanions},
	{func(c *Config) string { return hostsOf(c.Locks.Servers...) }, locksCompanions},
}

var locksCompanions = []string{"locks.user", "locks.password", "locks.schema", "locks.tls"}

// servers names the servers of Redis, without credentials.
func (r Redis) servers() string {
	if r.Mode == ModeStandalone {
		return hostsOf(r.URL)
	}
	return strings.Join(r.Addrs, ",")
}

// store is the driver; "" for locks in the Redis of the configuration.
func (l Locks) store() string {
	if l.InRedis() {
		return ""
	}
	return l.Driver
}

// hostsOf returns hosts and ports of URLs, or the paths of sockets.
func hostsOf(urls ...string) string {
	var all []string
	for _, text := range urls {
		if _, rest, found := strings.Cut(text, "://"); found {
			text = rest
		}
		text, _, _ = strings.Cut(text, "?")
		text = text[strings.LastIndexByte(text, '@')+1:]
		if hosts, _, _ := strings.Cut(text, "/"); hosts != "" {
			text = hosts
		}
		all = append(all, text)
	}
	return strings.Join(all, ",")
}

// override applies a source over the sources below it. Where it names other servers than they do,
// the companions of their servers are dropped: a secret goes only to the servers that it was
// written for. A source below without servers gives its companions to the servers above.
func (l *Loaded) override(apply func()) {
	before, at := l.Config, maps.Clone(l.From.at)
	apply()
	for _, c := range companions {
		//guard:secret-servers P8 a password of the file does not go to the servers of a flag
		if had := c.servers(&before); had == "" || had == c.servers(&l.Config) {
			continue
		}
		for _, of := range Leaves(&l.Config) {
			for _, path := range c.settings {
				if (of.Path == path || strings.HasPrefix(of.Path, path+".")) && l.From.at[of.Path] == at[of.Path] {
					if !of.value.IsZero() {
						l.dropped[of.Path] = l.From.Of(of.Path)
					}
					of.value.SetZero()
					delete(l.From.at, of.Path)
				}
			}
		}
	}
}

// Variables for --api.
const (
	APIVariable      = EnvPrefix + "API"
	APITokenVariable = EnvPrefix + "API_TOKEN"
)

// The variables of a command under a lock.
const (
	TokenVariable = EnvPrefix + "TOKEN"
	LockVariable  = EnvPrefix + "LOCK"
)

// The variables behind --from and --to; with _FILE behind them they name a file that holds the URL.
const (
	MoveFromVariable = EnvPrefix + "MOVE_FROM"
	MoveToVariable   = EnvPrefix + "MOVE_TO"
)

// AuthorVariable names the operator; it goes before the user of the operating system.
const AuthorVariable = EnvPrefix + "AUTHOR"
