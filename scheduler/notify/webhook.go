package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
)

// Formats of a webhook without a Body.
const (
	FormatJSON  = "json"  // the Message
	FormatSlack = "slack" // {"text": ...}, also for Mattermost, Rocket.Chat and the like
	FormatText  = "text"  // the text of the message
)

// Webhook is an HTTP call for each message: a POST with the message's id in the header
// Idempotency-Key. An answer of 2xx is a success. Redirects are not followed.
type Webhook struct {
	// URL begins with http:// or https://. Required.
	URL string
	// Headers are added to the request. Default none.
	Headers map[string]string
	// Format is one of FormatJSON (the default), FormatSlack and FormatText.
	Format string
	// Body is sent in place of a format, with {{text}}, {{json}}, {{job}}, {{event}},
	// {{namespace}}, {{key}}, {{action}} and {{id}} replaced. They are written as a JSON text
	// without its quotes, {{json}} as a JSON object, unless the header Content-Type names another
	// type than JSON.
	Body string
}

// answerMost bounds how much of an answer is read, in bytes.
const answerMost = 64 << 10

// hooks sends the calls. A connection is used once: net/http would repeat a request with an
// Idempotency-Key by itself.
var hooks = &http.Client{
	Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: webhookTime}).DialContext, TLSHandshakeTimeout: webhookTime,
		ForceAttemptHTTP2: true, DisableKeepAlives: true, MaxResponseHeaderBytes: answerMost,
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func (w *Webhook) faults() (list []*jobs.FieldError) {
	add := func(field, format string, args ...any) {
		list = append(list, &jobs.FieldError{Field: field, Msg: fmt.Sprintf(format, args...)})
	}
	if u, err := url.Parse(w.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		add("url", "it is no URL that begins with http:// or https:// and has a host")
	}
	for name, value := range w.Headers {
		at := strings.IndexFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' || r == '=' })
		if at >= 0 { // the rest may be its value, which is secret
			name = name[:at] + "..."
		}
		if name == "" || at >= 0 {
			add("headers", "%q is no name of a header", line(name, 64))
			continue
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			add("headers."+line(name, 64), "its value has a control character")
		}
	}
	if !slices.Contains([]string{"", FormatJSON, FormatSlack, FormatText}, w.Format) {
		add("format", "%q is not known; use json, slack or text, or write a body", line(w.Format, 64))
	}
	if w.Body == "" {
		return list
	}
	if w.Format != "" {
		add("body", "format is given too; keep one of them")
	}
	if name := unknownPlaceholder(w.Body); name != "" {
		add("body", "{{%s}} is not known; use some of %s", line(name, 32), placeholderWords())
	} else if w.escape() == escapeJSON && !json.Valid([]byte(fill(w.Body, Sample("n", "i", time.Time{}), escapeJSON))) {
		add("body", "it is no JSON with its {{...}} replaced; put {{text}} and the like in quotes and {{json}} in none, or name another Content-Type in headers")
	}
	return list
}

// header is the value of a header as it was given.
func (w *Webhook) header(name string) string {
	for given, value := range w.Headers {
		if http.CanonicalHeaderKey(given) == name {
			return value
		}
	}
	return ""
}

func (w *Webhook) escape() escape {
	switch of := w.header("Content-Type"); {
	case of == "" || strings.Contains(of, "json"):
		return escapeJSON
	case strings.Contains(of, "form-urlencoded"):
		return escapeQuery
	}
	return escapeNone
}

// content is the body of a message and its type.
func (w *Webhook) content(m Message) (body, kind string) {
	switch {
	case w.Body != "":
		return fill(w.Body, m, w.escape()), "application/json"
	case w.Format == FormatSlack:
		return fill(`{"text": "{{text}}"}`, m, escapeSlack), "application/json"
	case w.Format == FormatText:
		return m.Text + "\n", "text/plain; charset=utf-8"
	}
	return fill("{{json}}", m, escapeJSON), "application/json"
}

func (w *Webhook) send(ctx context.Context, m Message) error {
	body, kind := w.content(m)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, strings.NewReader(body))
	if err != nil {
		return errors.New("the request cannot be made") // never: Validate has checked it; err shows the URL
	}
	host := req.URL.Host
	req.Header.Set("Content-Type", kind)
	req.Header.Set("User-Agent", "escapement")
	for name, value := range w.Headers {
		req.Header.Set(name, value)
	}
	if given := req.Header.Get("Host"); given != "" {
		req.Host = given
		req.Header.Del("Host")
	}
	req.Header.Set("Idempotency-Key", m.ID)
	resp, err := hooks.Do(req)
	if err != nil {
		return fmt.Errorf("webhook at %s: %w", host, plain(ctx, err))
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, answerMost)) // its status counts
	switch {
	case resp.StatusCode/100 == 2:
		return nil
	case resp.StatusCode/100 == 3:
		return fmt.Errorf("webhook at %s: status %d; redirects are not followed", host, resp.StatusCode)
	}
	return fmt.Errorf("webhook at %s: status %d", host, resp.StatusCode)
}

// plain returns why a call failed, without the contents of the URL or of the answer's headers.
func plain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if op := new(net.OpError); errors.As(err, &op) {
		return op
	}
	if u := new(url.Error); errors.As(err, &u) && (strings.HasPrefix(u.Err.Error(), "tls: ") || strings.HasPrefix(u.Err.Error(), "x509: ")) {
		return u.Err
	}
	return errors.New("no valid answer")
}
