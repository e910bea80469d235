package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/cmd/internal/print"
	opshttp "github.com/escapement/escapement/scheduler/ops/http"
)

// healthWithin is how long a node may take to answer.
const healthWithin = 5 * time.Second

// health is the JSON of the health command.
type health struct {
	URL     string   `json:"url"`
	OK      bool     `json:"ok"`
	Reasons []string `json:"reasons"` // why not
}

// Health makes the command health.
func Health(a *command.App) *cobra.Command {
	var ready bool
	c := a.Command("health [--ready] [--api URL]", "ask a node whether it lives, or whether it may claim", command.Wants(), func(cmd *cobra.Command, _ []string) error {
		address, from := a.APIAddress(cmd), "--api"
		if !cmd.Flags().Changed("api") {
			from = config.APIVariable
		}
		if address == "" {
			l, err := a.Load(cmd, false, true)
			if err != nil {
				return err
			}
			if address, err = localAddress(l.HTTP); err != nil {
				return err
			}
			from = l.From.Of("http.listen").At("http.listen")
		}
		h, err := fetchHealth(address, ready)
		if err != nil && h.URL != "" {
			return fmt.Errorf("%s: no node answers at %s: %w; start the node, or correct the address", from, h.URL, noHealth(err))
		}
		if err != nil {
			return err
		}
		return printHealth(a, h)
	})
	c.Long = `Asks /healthz, or with --ready /readyz, of the node at http.listen on this machine, or of
the one at --api. Exits 0 when the answer is 200, otherwise 1 with the reasons. It is the
health check of a container without a shell; Redis is not asked.`
	c.Example = `escapement health
escapement health --ready --api http://10.0.0.7:8080`
	c.Flags().BoolVar(&ready, "ready", false, "ask whether the node is registered and may claim, rather than whether it lives")
	return c
}

// localAddress is the address at which this machine reaches the server.
func localAddress(h config.HTTP) (string, error) {
	_, port, err := net.SplitHostPort(h.Listen)
	if err != nil || port == "0" {
		return "", command.Usagef("http.listen is %s, which names no port to ask; name the node's address with --api URL", print.Quote(h.Listen))
	}
	return reachable(h.Listen), nil
}

// noHealth is why no answer came, without the request that the HTTP client names.
func noHealth(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("nothing within %s", healthWithin)
	}
	if of := new(url.Error); errors.As(err, &of) {
		return of.Err
	}
	return err
}

// fetchHealth requests the health of one node. An error with a URL means that the node does not
// answer. The request follows no redirect and uses no proxy.
func fetchHealth(address string, ready bool) (health, error) {
	u, err := url.Parse(strings.TrimSuffix(strings.TrimSuffix(address, "/"), strings.TrimSuffix(opshttp.Prefix, "/")))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return health{}, command.Usagef("%s is no address of a node, such as http://10.0.0.7:8080", print.Quote(opshttp.ShowAddress(address)))
	}
	path := "healthz"
	if ready {
		path = "readyz"
	}
	user := u.User
	u = u.JoinPath(path)
	u.User = nil // no error shows it: a name alone may be a token
	ctx, cancel := context.WithTimeout(context.Background(), healthWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return health{}, err
	}
	if user != nil {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	h := health{URL: u.String(), Reasons: []string{}}
	answer, err := client.Do(req)
	if err != nil {
		return h, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if err != nil {
		return h, err
	}
	h.OK = answer.StatusCode == http.StatusOK
	if !h.OK {
		h.Reasons = strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	return h, nil
}

// printHealth prints the answer. It ends the program with code 1 when the node is not well.
func printHealth(a *command.App, h health) error {
	if a.JSON() {
		if err := print.JSON(a.Stdout, h); err != nil {
			return err
		}
	} else if h.OK {
		_, err := fmt.Fprintln(a.Stdout, "ok")
		return err
	}
	if !h.OK {
		a.Report("%s", strings.Join(h.Reasons, "\n"))
		return command.Ended(command.ExitFailed) // the reason has been printed
	}
	return nil
}
