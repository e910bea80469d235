//go:build !unix

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "torture: needs a Unix system, for its signals")
	os.Exit(1)
}
