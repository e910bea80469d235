//go:build !unix

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "tickbench: needs a Unix system, which says what CPU time a process has taken")
	os.Exit(1)
}
