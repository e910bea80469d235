package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed dist
var dist embed.FS

// Config configures a console. The zero value is the pages alone.
type Config struct {
	// API answers requests below /api/v1/: a *api.Server. Default: none; then the API must be served beside the console, under the same
	// base path.
	API http.Handler
	// BasePath is what the paths of requests may begin with, such as /ops. It may also be missing, where a proxy has stripped it.
	// Default "": none.
	BasePath string
	// Name is what the console calls the cluster, in the page's title. Default: the namespace's name.
	Name string
}

// apiPath is where the pages look for the API, below their own folder.
const apiPath = "/api/v1/"

// policy lets the pages load and reach nothing but what stands beside them, and nobody frame them.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// gzipLeast is the size from which a file is sent compressed, bytes.
const gzipLeast = 1000

// file is an embedded file as it is sent.
type file struct {
	contentType string
	tag         string
	plain, gzip []byte // gzip: nil for a small one
}

// Handler serves the console. The pages are the same for everybody and hold no secrets: who may see and do what is decided by the API.
// Mount it at its base path and at everything below.
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
			http.NotFound(w, r)
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

// Below takes a base path away from requests that begin with it, and leaves others as they are. The base path without a slash at its end
// is answered with where the pages are.
func Below(base string, next http.Handler) http.Handler {
	base = strings.TrimRight(base, "/")
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

// types are those of the files, by the ends of their names: a machine's own table may lack them.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

func newFile(name string, text []byte) file {
	sum := sha256.Sum256(text)
	f := file{contentType: types[path.Ext(name)], tag: `"` + hex.EncodeToString(sum[:8]) + `"`, plain: text}
	if len(text) < gzipLeast {
		return f
	}
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // a level that there is
	_, _ = w.Write(text)                                  // a buffer takes everything
	_ = w.Close()
	f.gzip = b.Bytes()
	return f
}

func (f file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache") // the names stay the same: ask each time, by the tag
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", f.tag)
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.plain
	if f.gzip != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = f.gzip
	}
	h.Set("Content-Type", f.contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the asker went away; nobody is left to tell
}
