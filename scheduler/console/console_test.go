package console_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/escapement/escapement/scheduler/console"
)

// get sends a request to a handler, and follows no redirect.
func get(t *testing.T, h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestFiles: each file is sent with its type, a policy and a tag, and not again to a client that
// has it.
func TestFiles(t *testing.T) {
	h := console.Handler(console.Config{Name: `a "b" <c>`})
	for path, contentType := range map[string]string{
		"/": "text/html; charset=utf-8", "/index.html": "text/html; charset=utf-8", "/app.js": "text/javascript; charset=utf-8",
		"/app.css": "text/css; charset=utf-8", "/favicon.svg": "image/svg+xml", "/favicon-bad.svg": "image/svg+xml",
	} {
		r := get(t, h, path)
		if r.Code != http.StatusOK || r.Header().Get("Content-Type") != contentType || r.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %d %v", path, r.Code, r.Header())
		}
		csp := r.Header().Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", path, csp)
		}
		tag := r.Header().Get("ETag")
		if again := get(t, h, path, "If-None-Match", tag); tag == "" || again.Code != http.StatusNotModified || again.Body.String() != "" {
			t.Errorf("%s: tag %q, asked again: %d", path, tag, again.Code)
		}
	}
	page := get(t, h, "/").Body.String()
	if !strings.Contains(page, `data-name="a &#34;b&#34; &lt;c&gt;"`) {
		t.Errorf("the name is not in the page as text: %s", page)
	}
	for _, path := range []string{"/nowhere", "/dist/app.js", "/console.go"} {
		if r := get(t, h, path); r.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, r.Code)
		}
	}
	if r := get(t, h, "/", "Accept-Encoding", ""); r.Header().Get("Content-Encoding") != "" {
		t.Error("compressed for somebody who does not read that")
	}
	r := get(t, h, "/app.js", "Accept-Encoding", "gzip")
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(z); err != nil || string(b) != get(t, h, "/app.js").Body.String() {
		t.Error("compressed, app.js is another file", err)
	}
}

// TestBasePath: pages and API are found below the base path, and without it behind a proxy that
// strips it.
func TestBasePath(t *testing.T) {
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.EscapedPath()) })
	for _, base := range []string{"", "/ops", "/a/b/"} {
		h := console.Handler(console.Config{API: api, BasePath: base})
		for _, prefix := range []string{"", strings.TrimRight(base, "/")} {
			if got := get(t, h, prefix+"/").Body.String(); !strings.Contains(got, "app.js") {
				t.Errorf("%q: %s/ is %.60q", base, prefix, got)
			}
			if got := get(t, h, prefix+"/api/v1/jobs/a%2Fb").Body.String(); got != "/api/v1/jobs/a%2Fb" {
				t.Errorf("%q: the API was asked for %q", base, got)
			}
		}
		if r := get(t, h, "/opsx/app.js"); r.Code != http.StatusNotFound {
			t.Errorf("%q: /opsx/app.js: %d", base, r.Code)
		}
	}
	h := console.Handler(console.Config{BasePath: "/a/b"})
	if r := get(t, h, "/a/b"); r.Code != http.StatusFound || r.Header().Get("Location") != "/a/b/" {
		t.Errorf("/a/b: %d %q", r.Code, r.Header().Get("Location"))
	}
}

// A console mounted below another path than its base path answers with its base path; a base path
// needs no slash.
func TestMountedElsewhere(t *testing.T) {
	for path, want := range map[string]string{
		"/ops/":           `set BasePath to "/ops"`,
		"/ops/app.js":     `set BasePath to "/ops"`,
		"/a/b/index.html": `set BasePath to "/a/b"`,
		"/nowhere":        "Its pages are at /.",
	} {
		if r := get(t, console.Handler(console.Config{}), path); r.Code != http.StatusNotFound || !strings.Contains(r.Body.String(), want) || !strings.Contains(r.Body.String(), path) {
			t.Errorf("%s: %d %s; want %s", path, r.Code, r.Body, want)
		}
	}
	for _, base := range []string{"ops", "/ops", "ops/", "//ops//"} {
		h := console.Handler(console.Config{BasePath: base})
		if r := get(t, h, "/ops/"); r.Code != http.StatusOK || !strings.Contains(r.Body.String(), "app.js") {
			t.Errorf("%q: /ops/: %d", base, r.Code)
		}
		if r := get(t, h, "/ops"); r.Code != http.StatusFound || r.Header().Get("Location") != "/ops/" {
			t.Errorf("%q: /ops: %d %s", base, r.Code, r.Header().Get("Location"))
		}
		if r := get(t, h, "/other/"); r.Code != http.StatusNotFound || !strings.Contains(r.Body.String(), `BasePath is "`+base+`"`) {
			t.Errorf("%q: /other/: %d %s", base, r.Code, r.Body)
		}
	}
	if r := get(t, console.Handler(console.Config{}), "/licenses.txt"); r.Code != http.StatusOK || !strings.Contains(r.Body.String(), "npm:preact") {
		t.Errorf("licences: %d", r.Code)
	}
}

// most is the console's compressed size in bytes: 2 s at a slow phone's 300 kbit/s. The script is
// 61 KiB of it.
const most = 72 << 10

// TestSize: the page loads fast over a slow connection, and loads nothing from other hosts.
func TestSize(t *testing.T) {
	files, err := filepath.Glob("dist/*")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	total := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var n counter
		z := gzip.NewWriter(&n)
		_, _ = z.Write(b)
		_ = z.Close()
		total += int(n)
		if file == "dist/licenses.txt" { // which the page does not load
			continue
		}
		for _, url := range regexp.MustCompile(`https?://[a-zA-Z0-9.]+`).FindAllString(string(b), -1) {
			if url != "http://www.w3.org" { // the name of SVG
				t.Errorf("%s has the address %s", file, url)
			}
		}
	}
	t.Logf("%d bytes, compressed", total)
	if total > most {
		t.Errorf("the console takes %d bytes compressed, at most %d", total, most)
	}
}

type counter int

func (n *counter) Write(b []byte) (int, error) {
	*n += counter(len(b))
	return len(b), nil
}
