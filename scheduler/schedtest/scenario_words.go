package schedtest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// split cuts a line into words; "several of them" are one, also behind key=.
func split(line string) ([]string, error) {
	var words []string
	rest := strings.TrimSpace(line)
	for rest != "" {
		end, quoted := len(rest), false
		for i := range len(rest) {
			if rest[i] == '"' {
				quoted = !quoted
			}
			if rest[i] == ' ' && !quoted {
				end = i
				break
			}
		}
		if end == len(rest) && quoted {
			return nil, fmt.Errorf("a quotation mark is missing in %q", line)
		}
		words = append(words, strings.ReplaceAll(rest[:end], `"`, ""))
		rest = strings.TrimSpace(rest[end:])
	}
	return words, nil
}

// options takes the words of a line one after another and collects their errors.
type options struct {
	words []string
	errs  []error
}

func (o *options) bad(format string, args ...any) {
	o.errs = append(o.errs, fmt.Errorf(format, args...))
}

// done returns the errors; words that were not taken are errors too.
func (o *options) done() error {
	for _, w := range o.words {
		o.bad("%q does not belong there", w)
	}
	return errors.Join(o.errs...)
}

// next takes the first word that is no setting.
func (o *options) next(what string) string {
	for i, w := range o.words {
		if !setting(w) {
			o.words = append(append([]string(nil), o.words[:i]...), o.words[i+1:]...)
			return w
		}
	}
	o.bad("%s is missing", what)
	return ""
}

// plain is how many of the remaining words are no settings.
func (o *options) plain() int {
	n := 0
	for _, w := range o.words {
		if !setting(w) {
			n++
		}
	}
	return n
}

// setting reports whether a word has the form key=value.
func setting(word string) bool {
	key, _, found := strings.Cut(word, "=")
	return found && key != "" && strings.Trim(key, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// text takes key=value.
func (o *options) text(key string, into *string) bool {
	for i, w := range o.words {
		if value, found := strings.CutPrefix(w, key+"="); found {
			*into = value
			o.words = append(append([]string(nil), o.words[:i]...), o.words[i+1:]...)
			return true
		}
	}
	return false
}

// labels takes key=name:value[,name:value ...]; nil when it is not there.
func (o *options) labels(key string) map[string]string {
	var text string
	if !o.text(key, &text) {
		return nil
	}
	all := make(map[string]string)
	for _, word := range strings.Split(text, ",") {
		name, value, found := strings.Cut(word, ":")
		if !found {
			o.bad("%s=%s: not labels such as gpu:yes,zone:a", key, text)
		}
		all[name] = value
	}
	return all
}

func (o *options) count(key string, into *int) {
	var text string
	if !o.text(key, &text) {
		return
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		o.bad("%s=%s: not a number", key, text)
	}
	*into = n
}

func (o *options) time(key string, into *time.Duration) bool {
	var text string
	if !o.text(key, &text) {
		return false
	}
	*into = o.duration(key+"=", text)
	return true
}

func (o *options) duration(before, text string) time.Duration {
	d, err := time.ParseDuration(strings.TrimPrefix(text, "+"))
	if err != nil {
		o.bad("%s%s: not a time such as 90s, 1h30m or +10s", before, text)
	}
	return d
}

func (o *options) number() int64 {
	text := o.next("a number")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		o.bad("%q is not a number", text)
	}
	return n
}

func (o *options) span() time.Duration { return o.duration("", o.next("a time")) }
