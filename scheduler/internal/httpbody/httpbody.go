// Package httpbody has what an HTTP answer with a body needs: whether the caller has the body already, and whether the body may be
// sent compressed.
package httpbody

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
)

// GzipLeast is the size from which a body is worth compressing, bytes: smaller ones fit into one packet.
const GzipLeast = 1000

// Unchanged reports whether a request names a body's tag in If-None-Match (RFC 9110, 13.1.2). The comparison is the weak one: a proxy
// that compresses marks the tag with W/.
func Unchanged(r *http.Request, tag string) bool {
	for _, value := range r.Header.Values("If-None-Match") {
		for candidate := range strings.SplitSeq(value, ",") {
			if c := strings.TrimPrefix(strings.TrimSpace(candidate), "W/"); c == tag || c == "*" {
				return true
			}
		}
	}
	return false
}

// TakesGzip reports whether the caller accepts a gzip body (RFC 9110, 12.5.3).
func TakesGzip(r *http.Request) bool {
	takes := false
	for item := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, weight, _ := strings.Cut(item, ";")
		coding = strings.ToLower(strings.TrimSpace(coding))
		if coding != "gzip" && coding != "*" {
			continue
		}
		_, q, weighed := strings.Cut(weight, "=")
		n, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
		takes = !weighed || err == nil && n > 0
		if coding == "gzip" {
			return takes
		}
	}
	return takes
}

// Gzip compresses a body. level is one of compress/gzip.
func Gzip(body []byte, level int) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, level)
	if err != nil {
		panic(err) // a level that there is not
	}
	_, _ = w.Write(body) // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}
