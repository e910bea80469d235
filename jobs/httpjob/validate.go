package httpjob

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/escapement/escapement/jobs"
)

// methods are the allowed methods.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodOptions}

// Validate checks the options without sending anything. The error joins a *jobs.FieldError for each fault,
// with the fields method, url, headers.NAME and expect. It shows no part of the URL or of a header's value.
func (o Options) Validate() error {
	var faults []error
	add := func(field, msg string) {
		if msg != "" {
			faults = append(faults, &jobs.FieldError{Field: field, Msg: msg})
		}
	}
	if o.Method != "" && !slices.Contains(methods, o.Method) {
		add("method", fmt.Sprintf("%q is not one of %s", clip(o.Method), strings.Join(methods, ", ")))
	}
	add("url", urlFault(o.URL))
	given := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(o.Headers)) {
		add("headers."+fieldName(name), headerFault(name, o.Headers[name]))
		key := http.CanonicalHeaderKey(name)
		if other, twice := given[key]; twice {
			add("headers."+fieldName(name), fmt.Sprintf("is the same header as %s; keep one of them", fieldName(other)))
		}
		given[key] = name
	}
	if _, err := parseExpect(o.Expect); err != nil {
		add("expect", err.Error())
	}
	return errors.Join(faults...)
}

// fieldName returns a header's name for a message, quoted unless it is plain. Text after a : or = is meant as
// the value, and not shown.
func fieldName(name string) string {
	if headerPattern.MatchString(name) {
		return name
	}
	if i := strings.IndexAny(name, ":= \t"); i >= 0 {
		name = name[:i+1] + "..."
	}
	return strconv.Quote(clip(name))
}

// urlFault returns the fault of a URL, or "". It does not use the parser's error, which shows the URL.
func urlFault(text string) string {
	const example = "write one like https://example.org/hook"
	if text == "" {
		return "is missing; " + example
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return `cannot be read as a URL; percent-encode what is special in it (" " is %20, "@" is %40, "%" is %25)`
	case u.Scheme != "http" && u.Scheme != "https":
		return "is not http:// or https://; " + example
	case u.Hostname() == "":
		return "names no host; " + example
	case u.Fragment != "":
		return "has a #, and what follows that is never sent; remove it"
	}
	if port, err := strconv.Atoi(u.Port()); u.Port() != "" && (err != nil || port < 1 || port > 65535) {
		return "has a port outside 1 to 65535"
	}
	return ""
}

// clip shortens a value for an error text.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
