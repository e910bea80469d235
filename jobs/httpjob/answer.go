package httpjob

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/mask"
)

const (
	// maxBody bounds the part of an answer's body that is read, in bytes.
	maxBody = 8 << 20
	// maxLine bounds the part of the body's first line in an error, in bytes.
	maxLine = 256
)

// checkAnswer reads the answer, stores the end of its body with the run, and returns an error for an unexpected status.
func (c *caller) checkAnswer(ctx context.Context, resp *http.Response, run *jobs.Run) error {
	var said firstLine
	var body beginning
	sinks := []io.Writer{run.Output(), &said}
	if c.result {
		sinks = append(sinks, &body)
	}
	_, broken := io.Copy(io.MultiWriter(sinks...), io.LimitReader(resp.Body, maxBody))
	status := fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	switch {
	case !c.expect.holds(resp.StatusCode):
		return fmt.Errorf("%s: %w", c.name, unexpected(status, resp, mask.Echo(said.String(), c.url)))
	case broken != nil:
		return fmt.Errorf("%s: %s, but its body is incomplete: %w", c.name, status, cause(ctx, broken))
	}
	if c.result {
		body.keep(run)
	}
	return nil
}

// unexpected returns the error for an unexpected status.
func unexpected(status string, resp *http.Response, said string) error {
	text := strings.TrimSpace(status)
	if resp.StatusCode/100 == 3 {
		text += ", and redirects are not followed"
		if to, err := resp.Location(); err == nil {
			text += "; it points to " + mask.URL(to.String())
		}
	}
	if said != "" {
		text += ": " + said
	}
	err := fmt.Errorf("%s", text)
	if permanent(resp.StatusCode) {
		return jobs.Permanent(err)
	}
	return err
}

// permanent reports whether the same request would be refused again: 4xx, except for too slow, too early and too
// often.
func permanent(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status/100 == 4
}

// firstLine keeps the beginning of the first line written to it that is not blank.
type firstLine struct {
	line []byte
	full bool // the line is complete, or has reached maxLine
}

// Write appends to the line. It never fails.
func (k *firstLine) Write(p []byte) (int, error) {
	n := len(p)
	if len(k.line) == 0 {
		p = bytes.TrimLeft(p, " \t\r\n")
	}
	if k.full || len(p) == 0 {
		return n, nil
	}
	if i := bytes.IndexByte(p, '\n'); i >= 0 {
		p, k.full = p[:i], true
	}
	k.line = append(k.line, p...)
	if len(k.line) > maxLine {
		k.line, k.full = k.line[:maxLine], true
	}
	return n, nil
}

// String returns the line without control characters, for a terminal and a log.
func (k *firstLine) String() string {
	// Drops also a character that was cut in two.
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(k.line), ""))
	return strings.TrimSpace(text)
}
