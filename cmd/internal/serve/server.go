package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/scheduler/ops"
)

// closeWithin bounds how long a stopping server waits for answers in the making.
const closeWithin = 5 * time.Second

// server is the HTTP face of a process.
type server struct {
	listener net.Listener
	http     *http.Server
	failed   chan error // at most one: why serving ended by itself
}

// startServer binds the address at once, so that a taken port is known before
// anything else begins, and serves until stop. No address, no server: nil.
func startServer(cfg config.HTTP, handler http.Handler, log *slog.Logger) (*server, error) {
	if cfg.Listen == "" {
		return nil, nil //nolint:nilnil // no server is a choice, and stop and wait know it
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("%w; end what uses it, or choose another with http.listen or ESCAPEMENT_HTTP_LISTEN, such as 127.0.0.1:0 for any free port", err)
	}
	s := &server{
		listener: l,
		failed:   make(chan error, 1),
		http: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       10 * time.Second,
			WriteTimeout:      10 * time.Second,
			IdleTimeout:       time.Minute,
			MaxHeaderBytes:    16 << 10,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
	}
	go func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("HTTP on %s: %w", l.Addr(), err)
		}
	}()
	return s, nil
}

// url is the address to type into a browser on this machine, "none" without a server.
func (s *server) url() string {
	if s == nil {
		return "none"
	}
	return reachable(s.listener.Addr().String())
}

// reachable is the URL at which this machine reaches a server that listens at an address.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "http://" + listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// wait returns when ctx ends, or with the reason when serving ended by itself.
func (s *server) wait(ctx context.Context) error {
	if s == nil {
		<-ctx.Done()
		return nil
	}
	select {
	case err := <-s.failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// stop answers the open requests, then closes.
func (s *server) stop() {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close() // a client is slow; the process ends
	}
}

// node is what the health endpoints need of a node.
type node interface {
	Name() string
	Ready() error // nil, or the reason why not
}

// healthHandler answers /healthz, /readyz and /version.
func healthHandler[N node](nodes []N) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, "ok\n")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		var why []string
		for _, n := range nodes {
			if err := n.Ready(); err != nil {
				for _, reason := range ops.Causes(err) {
					why = append(why, n.Name()+": "+print.Harmless(reason.Error()))
				}
			}
		}
		if len(why) > 0 {
			answer(w, http.StatusServiceUnavailable, strings.Join(why, "\n")+"\n")
			return
		}
		answer(w, http.StatusOK, "ready\n")
	})
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(thisBuild()) // the client has gone away
	})
	return mux
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // as above
}
