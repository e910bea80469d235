//go:build unix

package boundedfile

import "syscall"

const noFollow = syscall.O_NOFOLLOW
