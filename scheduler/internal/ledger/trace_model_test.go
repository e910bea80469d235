package ledger_test

import (
	"testing"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/model"
)

// TestTrace has nodes claim and settle, in whatever order and however wrong: the embedded and the
// real server give the replies and hold the keys that the model wants.
func TestTrace(t *testing.T) {
	ledger.Replay(t, func(c ledger.Config) ledger.Model { return model.New(c) },
		"claim granted", "claim skipped", "claim stale", "claim early", "claim held", "claim superseded",
		"claim unknown", "claim clock", "claim opened", "claim passed", "tick closed succeeded", "tick closed cancelled", "tick closed abandoned",
		"settle settled", "settle lost", "settle unknown", "renew renewed", "renew gone", "reap reaped", "reap alive", "reap gone", "reap clock",
		"unclaim returned", "unclaim lost", "define created", "define same", "define replaced", "define differs", "trigger unknown")
}
