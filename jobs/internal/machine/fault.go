// Package machine tells what a machine lacks from what is wrong with a job.
package machine

import (
	"errors"
	"syscall"

	"github.com/escapement/escapement/jobs"
)

// lacking are the errors of a machine that has not enough files, processes, memory or disk. Every
// job there may get them. EADDRNOTAVAIL is none: the kernel returns it for one destination, when
// the machine has no address of its family, or no port left for it.
var lacking = []error{
	syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM,
	syscall.ENOBUFS, syscall.ENOSPC, syscall.EDQUOT,
}

// Fault marks the error of work that has not begun as a jobs.NodeFault where the machine lacks
// something, and returns any other one as it is.
func Fault(err error) error {
	for _, of := range lacking {
		if errors.Is(err, of) {
			return jobs.NodeFault(err)
		}
	}
	return err
}
