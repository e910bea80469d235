package ledger_test

import (
	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

func init() {
	ledger.Judge = func(b ledger.JobSnapshot) (wrong []string) {
		found, _ := audit.Books(b)
		for _, f := range found {
			wrong = append(wrong, f.What)
		}
		return wrong
	}
}
