package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	opshttp "github.com/escapement/escapement/scheduler/ops/http"

	"github.com/escapement/escapement/cmd/internal/config"
)

// apiAddress is the address of the API for a command; "" for Redis. A flag goes before the
// variable.
func (a *app) apiAddress(cmd *cobra.Command) string {
	if cmd.Flags().Changed("redis") && !cmd.Flags().Changed("api") {
		return ""
	}
	return cmp.Or(a.flags.api, a.env[config.APIVariable])
}

// overAPI carries out a command over a node's API.
func (a *app) overAPI(address string, redis bool, args []string, f func(tool) error) error {
	from, token, _, err := config.Secret(a.env, config.APITokenVariable)
	if err != nil {
		return usagef("%s: %w", from, err)
	}
	client, err := opshttp.NewClient(address, opshttp.ClientConfig{Token: token})
	if err != nil {
		return usageError{err}
	}
	client = client.As(a.actor())
	if redis {
		return usagef("--api and --redis are two ways to one namespace; give one of them")
	}
	ctx, stop := a.interruptible()
	defer stop()
	if name := a.flags.namespace; name != "" {
		serves, err := client.Namespace(ctx)
		if err != nil {
			return err
		}
		if serves.Name != name {
			return usagef("the node at %s serves namespace %q; for %q ask one of its nodes, or use --redis", opshttp.ShowAddress(address), serves.Name, name)
		}
	}
	err = f(tool{ctx, client, args, func() bool { return false }})
	a.elsewhere(ctx, client, err)
	if errors.Is(err, opshttp.ErrAccess) && token == "" {
		return fmt.Errorf("%w; the token is read from %s, or the file that %s_FILE names", err, config.APITokenVariable, config.APITokenVariable)
	}
	return err
}
