package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/escapement/escapement/scheduler/internal/httpbody"
)

//go:embed dist
var dist embed.FS

// Config configures a console. The zero value is the pages alone.
type Config struct {
	// API answers requests below /api/v1/: a *api.Server. Default: none; then the API must be
	// served beside the console, under the same base path.
	API http.Handler
	// BasePath is the prefix of the paths of requests, such as /ops. It may also be missing, where
	// a proxy has stripped it. Default "": none.
	BasePath string
	// Name is the cluster's name in the page's title. Default: the namespace's name.
	Name string
}

// apiPath is where the pages look for the API, below their own folder.
const apiPath = "/api/v1/"

// policy lets the pages load and reach only files beside them, and forbids framing.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// file is an embedded file as it is sent.
type file struct {
	contentType string
	tag         string
	plain, gzip []byte // gzip: nil for a small one
}

// Handler serves the console. The pages are the same for all users and hold no secrets: the API
// decides who may see and do what. Mount it at its base path and at everything below: with a
// BasePath of "/ops" at "/ops" and at "/ops/".
func Handler(cfg Config) http.Handler {
	files := load(cfg.Name)
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "the console's pages are only read", http.StatusMethodNotAllowed)
			return
		}
		name := strings.TrimPrefix(r.URL.Path, "/")
		if name == "" {
			name = "index.html"
		}
		f, there := files[name]
		if !there {
			http.Error(w, unknownPage(files, cfg.BasePath, r.URL.Path), http.StatusNotFound)
			return
		}
		f.serve(w, r)
	})
	mux := http.NewServeMux()
	mux.Handle("/", pages)
	if cfg.API != nil {
		mux.Handle(apiPath, cfg.API)
		mux.Handle(strings.TrimSuffix(apiPath, "/"), cfg.API)
	}
	return Below(cfg.BasePath, mux)
}

// unknownPage is the answer to a path without a page. A handler that is mounted below another path
// than its base path gives no other answer.
func unknownPage(files map[string]file, base, at string) string {
	folder, name := path.Split(at)
	if _, page := files[name]; (name == "" || page) && folder != "/" {
		return fmt.Sprintf("The console has no page at %s. It is mounted below %s, and its BasePath is %q: set BasePath to %q.\n",
			at, folder, base, strings.TrimSuffix(folder, "/"))
	}
	return fmt.Sprintf("The console has no page at %s. Its pages are at %s.\n", at, strings.TrimSuffix(slashed(base), "/")+"/")
}

// slashed is a base path with one slash in front and none at its end; "" for none.
func slashed(base string) string {
	if base = strings.Trim(base, "/"); base == "" {
		return ""
	}
	return "/" + base
}

// Below takes a base path away from requests that begin with it, and leaves other requests as they
// are. The base path without a slash at its end is redirected to the pages.
func Below(base string, next http.Handler) http.Handler {
	base = slashed(base)
	if base == "" {
		return next
	}
	strip := http.StripPrefix(base, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == base:
			http.Redirect(w, r, path.Base(base)+"/", http.StatusFound)
		case strings.HasPrefix(r.URL.EscapedPath(), base+"/"):
			if at := cleaned(strings.TrimPrefix(r.URL.EscapedPath(), base)); base+at != r.URL.EscapedPath() { // else the mux would, without base
				if r.URL.RawQuery != "" {
					at += "?" + r.URL.RawQuery
				}
				http.Redirect(w, r, base+at, http.StatusTemporaryRedirect) //nolint:gosec // base is our own, and at begins with one slash
				return
			}
			strip.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// cleaned is a path without empty and dotted parts.
func cleaned(p string) string {
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

// load reads the files, with a name for the cluster.
func load(name string) map[string]file {
	files := make(map[string]file)
	entries, err := dist.ReadDir("dist")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, e := range entries {
		text, err := fs.ReadFile(dist, "dist/"+e.Name())
		if err != nil {
			panic(err)
		}
		if e.Name() == "index.html" {
			text = bytes.ReplaceAll(text, []byte("{{name}}"), []byte(html.EscapeString(name)))
		}
		files[e.Name()] = newFile(e.Name(), text)
	}
	return files
}

// types are the files' media types, by the ends of their names: a machine's own table may lack
// them.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
	".txt": "text/plain; charset=utf-8",
}

func newFile(name string, text []byte) file {
	sum := sha256.Sum256(text)
	f := file{contentType: types[path.Ext(name)], tag: `"` + hex.EncodeToString(sum[:8]) + `"`, plain: text}
	if len(text) >= httpbody.GzipLeast {
		f.gzip = httpbody.Gzip(text, gzip.BestCompression)
	}
	return f
}

func (f file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache") // the names stay the same, so clients revalidate by the tag
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", f.tag)
	if httpbody.Unchanged(r, f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.plain
	if f.gzip != nil && httpbody.TakesGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = f.gzip
	}
	h.Set("Content-Type", f.contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client has gone away
}
