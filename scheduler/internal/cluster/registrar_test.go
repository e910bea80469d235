package cluster

import (
	"testing"

	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// The lane's word that Redis may have lost what it knew is what the registrar listens to.
func TestRegistrarHearsOfALoss(t *testing.T) {
	lost := make(chan struct{}, 1)
	r := newRegistrar(&Cluster{Config: Config{Jobs: work.NewJobs(nil), Lost: lost}})
	wait.Signal(lost)
	select {
	case <-r.lost:
	default:
		t.Error("the registrar does not hear it")
	}
}
