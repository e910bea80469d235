package httpjob

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// expectation is the set of expected statuses, by class (2 for 2xx) and by number.
type expectation map[int]bool

func (e expectation) holds(status int) bool { return e[status] || e[status/100] }

// statusPattern excludes 1xx: such an answer is followed by the real one.
var statusPattern = regexp.MustCompile(`^(?:[2-5]xx|[2-5][0-9][0-9])$`)

// parseExpect parses a list such as "2xx,304".
func parseExpect(text string) (expectation, error) {
	e := make(expectation)
	for item := range strings.SplitSeq(defaultTo(text, "2xx"), ",") {
		item = strings.TrimSpace(item)
		if !statusPattern.MatchString(item) {
			return nil, fmt.Errorf(`%q is not a status; write a list of numbers from 200 to 599 and of 2xx to 5xx, such as "200,204"`,
				clip(item))
		}
		n, err := strconv.Atoi(strings.TrimSuffix(item, "xx"))
		if err != nil {
			return nil, err
		}
		e[n] = true
	}
	return e, nil
}
