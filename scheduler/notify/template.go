package notify

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/escapement/escapement/scheduler/ops"
)

// escape is how a value is written in a body.
type escape int

const (
	escapeJSON escape = iota
	escapeSlack
	escapeQuery
	escapeNone
)

// placeholders are the names that a body may have in {{ }}. No template package: the standard
// library's packages call methods by their names, which keeps the linker from leaving out unused
// code.
var placeholders = []string{"text", "json", "job", "event", "namespace", "key", "action", "id"}

var placeholder = regexp.MustCompile(`\{\{\s*([^{}]*?)\s*\}\}`)

// unknownPlaceholder returns the first invalid placeholder of a body, "" for none.
func unknownPlaceholder(body string) string {
	for _, found := range placeholder.FindAllStringSubmatch(body, -1) {
		if !slices.Contains(placeholders, found[1]) {
			return found[1]
		}
	}
	return ""
}

func placeholderWords() string { return "{{" + strings.Join(placeholders, "}}, {{") + "}}" }

// fill replaces the placeholders of a body.
func fill(body string, m Message, how escape) string {
	return placeholder.ReplaceAllStringFunc(body, func(text string) string {
		name := placeholder.FindStringSubmatch(text)[1]
		value := m.value(name)
		switch {
		case how == escapeQuery:
			return url.QueryEscape(value)
		case how == escapeNone || name == "json":
			return value
		case how == escapeSlack:
			value = slackText.Replace(value)
		}
		quoted, _ := json.Marshal(value) // a text
		return string(quoted[1 : len(quoted)-1])
	})
}

// slackText is text in which nothing is a mention or a link.
var slackText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// value returns the text in place of a placeholder.
func (m Message) value(name string) string {
	switch name {
	case "json":
		text, _ := ops.Encode(m) // texts, numbers and times
		return string(text)
	case "job":
		return m.each(func(e Event) string { return e.Job })
	case "event":
		return m.each(func(e Event) string { return string(e.Kind) })
	case "namespace":
		return m.Namespace
	case "key":
		if len(m.Events) == 1 {
			return m.Events[0].Key
		}
		return m.ID
	case "action":
		if len(m.Events) > 0 && !slices.ContainsFunc(m.Events, func(e Event) bool { return !e.Recovered }) {
			return "resolve"
		}
		return "trigger"
	case "id":
		return m.ID
	}
	return m.Text
}

// namesMost bounds how many different words stand for {{job}}.
const namesMost = 10

// each joins the events' words, each word once.
func (m Message) each(of func(Event) string) string {
	var words []string
	for _, e := range m.Events {
		if word := of(e); !slices.Contains(words, word) && len(words) < namesMost {
			words = append(words, word)
		}
	}
	return strings.Join(words, ", ")
}
