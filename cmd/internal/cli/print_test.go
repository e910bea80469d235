package cli

import (
	"strings"
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/jobs/mask"
	opshttp "github.com/escapement/escapement/scheduler/ops/http"
)

// TestAddressesAreMasked: each function that shows an address masks a possible password, also in a
// text that is no address.
func TestAddressesAreMasked(t *testing.T) {
	for _, text := range []string{
		"A:hunter2@", "u:hunter2@127.0.0.1:1", "hunter2@h", "x://hunter2@h", "http://u:hunter2@127.0.0.1:1/p", "https://u:hunter2@127.0.0.1:1?x=1",
		"https://127.0.0.1:1?token=hunter2", "http://hunter2@127.0.0.1:1", "htp:u:hunter2@h", "postgres://u:hunter2@a,b/db?password=hunter2", "http://u:hunter2 @h", "http://u:%zzhunter2@h",
	} {
		for name, show := range map[string]func(string) string{"server": config.MaskServer, "webhook": mask.URL, "API": opshttp.ShowAddress} {
			if got := show(text); strings.Contains(got, "hunter2") {
				t.Errorf("%s, %q: %s", name, text, got)
			}
		}
		if _, err := opshttp.NewClient(text, opshttp.ClientConfig{}); err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("API client, %q: %v", text, err)
		}
		code, _, words := cmdtest.Call(nil, "", "health", "--api", text)
		if code == command.ExitDone || strings.Contains(words, "hunter2") {
			t.Errorf("health, %q: exit %d, %s", text, code, words)
		}
		code, _, words = cmdtest.Call(nil, "", "jobs", "list", "--api", text)
		if code == command.ExitDone || strings.Contains(words, "hunter2") {
			t.Errorf("jobs list, %q: exit %d, %s", text, code, words)
		}
		code, _, words = cmdtest.Call(nil, "", "jobs", "list", "--redis", text)
		if code == command.ExitDone || strings.Contains(words, "hunter2") {
			t.Errorf("jobs list in Redis, %q: exit %d, %s", text, code, words)
		}
	}
}
