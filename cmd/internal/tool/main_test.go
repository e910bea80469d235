package tool

import (
	"testing"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
)

func TestMain(m *testing.M) {
	cmdtest.Main(m, Nodes, Generations, Doctor, Ledger, Audit, Cron, Config, Notify, Move, Backup, Restore)
}
