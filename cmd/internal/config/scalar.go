package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler"
)

var durationType = reflect.TypeFor[time.Duration]()

// wordsOf returns the only texts that a field may have: the words of its words tag, or of the job's
// setting in its setting tag.
func wordsOf(tag reflect.StructTag) []string {
	if name := tag.Get("setting"); name != "" {
		return spec.WordsOf(name)
	}
	return strings.Fields(tag.Get("words"))
}

// setText reads text into v, a string, whole number or duration; words, when there are any, are the
// only texts allowed. Values of the file, a variable and a flag are all read by setText.
func setText(v reflect.Value, words []string, text string) error {
	switch {
	case v.Type() == durationType:
		d, err := spec.ParseDuration(text)
		v.SetInt(int64(d))
		return err
	case v.Kind() == reflect.Int:
		n, err := strconv.Atoi(text)
		v.SetInt(int64(n))
		if err != nil {
			return fmt.Errorf("%s is not a whole number", print.Quote(text))
		}
		return nil
	case v.Kind() == reflect.String:
		v.SetString(text)
		if len(words) > 0 && !slices.Contains(words, text) {
			return fmt.Errorf("%s is not one of %s%s", print.Quote(text), strings.Join(words, ", "), spec.DidYouMean(text, words))
		}
		return nil
	default:
		return fmt.Errorf("no single value can be read into %s", v.Type()) // a slip in config.go; its test finds it
	}
}

// setFlat is setText for a variable, where a list is written "a,b" and a map "k=v,k2=v2".
func setFlat(v reflect.Value, words []string, text string) error {
	switch v.Kind() {
	case reflect.Slice:
		if bracketed(text) {
			return fmt.Errorf("%s has brackets; a list is written here without them: a:1,b:2", print.Quote(text))
		}
		v.Set(reflect.ValueOf(SplitComma(text)))
		return nil
	case reflect.Map:
		m := map[string]string{}
		for _, pair := range SplitComma(text) {
			key, value, ok := strings.Cut(pair, "=")
			if !ok || key == "" {
				return fmt.Errorf("%s is not KEY=VALUE; write KEY=VALUE,KEY=VALUE", print.Quote(pair))
			}
			if _, twice := m[key]; twice {
				return fmt.Errorf("%s is given twice", print.Quote(key))
			}
			m[key] = value
		}
		v.Set(reflect.ValueOf(m))
		return nil
	default:
		return setText(v, words, text)
	}
}

// bracketed reports whether a list is written as in a file, or is the beginning of a list that a
// shell cut. An address such as [::1]:26379 is neither.
func bracketed(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "[") && (strings.HasSuffix(text, "]") || !strings.Contains(text, "]"))
}

// SplitComma splits a list at its commas, without spaces and empty items.
func SplitComma(text string) []string {
	list := []string{}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// The words of node.claim_ahead, besides a duration.
const (
	aheadAuto = "auto"
	aheadOff  = "off"
)

// Ahead is node.claim_ahead as the library has it: 0 for auto, negative for off.
func (n Node) Ahead() (time.Duration, error) {
	switch n.ClaimAhead {
	case aheadAuto:
		return 0, nil
	case aheadOff:
		return -1, nil
	}
	d, err := spec.ParseDuration(n.ClaimAhead)
	if err != nil || d <= 0 || d > scheduler.ClaimAheadMax {
		return 0, fmt.Errorf("%s is not %s, %s or a duration up to %s", print.Quote(n.ClaimAhead), aheadAuto, aheadOff, spec.FormatDuration(scheduler.ClaimAheadMax))
	}
	return d, nil
}
