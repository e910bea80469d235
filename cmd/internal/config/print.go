package config

import (
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/escapement/escapement/jobs/mask"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/locking/redisconn"
)

// masked stands in the place of a secret. The arguments and the environment of a command, and the
// path, headers and body of a call, are masked whole: which of them is secret is unknown.
const masked = mask.Text

// Print writes a configuration as YAML, in the order of the sample, with the secrets masked.
// Of a job only written settings appear.
func Print(w io.Writer, c *Config) error {
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(YAMLNode(c)); err != nil {
		return err
	}
	return enc.Close()
}

// YAMLNode is the configuration as printed, before it is written as YAML or JSON.
func YAMLNode(c *Config) *yaml.Node {
	return sectionNode(reflect.ValueOf(shown(c)), false)
}

// shown is a copy of c that may be shown to anybody.
func shown(c *Config) Config {
	s := *c
	s.Redis.URL, s.Redis.Next = redisconn.Mask(c.Redis.URL), redisconn.Mask(c.Redis.Next)
	if s.Redis.SentinelPassword != "" {
		s.Redis.SentinelPassword = masked
	}
	s.HTTP = c.HTTP.shown()
	if s.Locks.Password != "" {
		s.Locks.Password = masked
	}
	s.Locks.Servers = slices.Clone(c.Locks.Servers)
	for i, server := range s.Locks.Servers {
		s.Locks.Servers[i] = MaskServer(server)
	}
	s.Notify.Targets = slices.Clone(c.Notify.Targets)
	for i, t := range s.Notify.Targets {
		if t.Webhook != nil {
			w := *t.Webhook
			w.URL, w.Headers = mask.URL(w.URL), mask.Values(w.Headers)
			if w.Body != "" {
				w.Body = `"` + masked + `"` // JSON, as it has to be
			}
			s.Notify.Targets[i].Webhook = &w
		}
		s.Notify.Targets[i].Command = mask.Args(t.Command)
	}
	s.Jobs = slices.Clone(c.Jobs)
	for i, j := range s.Jobs {
		s.Jobs[i].work = j.work.shown()
	}
	s.Handlers = maps.Clone(c.Handlers)
	for name, h := range s.Handlers {
		s.Handlers[name] = h.shown()
	}
	return s
}

// shown is a copy that may be shown to anybody.
func (h Handler) shown() Handler {
	if h.Exec != nil {
		e := *h.Exec
		e.Command, e.Env = mask.Args(e.Command), mask.Values(e.Env)
		h.Exec = &e
	}
	if h.HTTP != nil {
		c := *h.HTTP
		c.URL, c.Headers = mask.URL(c.URL), mask.Values(c.Headers)
		if c.Body != "" {
			c.Body = masked
		}
		h.HTTP = &c
	}
	return h
}

// shown returns a copy without secrets. A node refuses it: a mask must not become a secret.
func (h HTTP) shown() HTTP {
	if h.OperatorToken != "" {
		h.OperatorToken = masked
	}
	if h.ViewerToken != "" {
		h.ViewerToken = masked
	}
	h.Users = maps.Clone(h.Users)
	for name, text := range h.Users {
		role, _, _ := strings.Cut(text, ":")
		h.Users[name] = role + ":" + masked
	}
	return h
}

// sectionNode builds the mapping of a struct; sparse leaves out zero values.
func sectionNode(v reflect.Value, sparse bool) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, s := range settings(v) {
		if sparse && s.value.IsZero() {
			continue
		}
		n.Content = append(n.Content, textNode(s.key), valueNode(s.value, sparse))
	}
	return n
}

func valueNode(v reflect.Value, sparse bool) *yaml.Node {
	switch {
	case v.Type() == jobEntryType:
		entry := v.Interface().(jobEntry)
		return entry.node()
	case v.Type() == durationType:
		return textNode(spec.FormatDuration(time.Duration(v.Int())))
	case v.Kind() == reflect.Int:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(v.Int(), 10)}
	case v.Kind() == reflect.Pointer:
		return sectionNode(v.Elem(), true)
	case v.Kind() == reflect.Struct:
		return sectionNode(v, sparse)
	case v.Kind() == reflect.Map:
		return mapNode(v)
	case v.Kind() == reflect.Slice:
		return listNode(v)
	default:
		return textNode(v.String())
	}
}

// mapNode writes texts, or lists of them, by their keys.
func mapNode(v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		n.Content = append(n.Content, textNode(key.String()), valueNode(v.MapIndex(key), true))
	}
	return n
}

// listNode writes texts on one line and sections, the jobs, one below the other.
func listNode(v reflect.Value) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	if v.Len() == 0 || v.Type().Elem().Kind() == reflect.String {
		n.Style = yaml.FlowStyle
	}
	for i := range v.Len() {
		n.Content = append(n.Content, valueNode(v.Index(i), true))
	}
	return n
}

// oldBool are texts that readers of YAML 1.1 take for true or false.
var oldBool = regexp.MustCompile(`^(?i:y|n|yes|no|on|off)$`)

func textNode(text string) *yaml.Node {
	var n yaml.Node
	n.SetString(text)
	if oldBool.MatchString(text) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return &n
}

// MaskServer returns a server of locks.servers without a possible password: only the scheme and the
// host.
func MaskServer(text string) string {
	text, query, some := strings.Cut(text, "?")
	if some && query != "" {
		text += "?" + masked
	}
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return text
	}
	scheme, _, some := strings.Cut(text[:at], "://")
	if !some {
		return masked + text[at:]
	}
	return scheme + "://" + masked + text[at:]
}
