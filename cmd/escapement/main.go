package main

import "os"

func main() {
	os.Exit(new(app).Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}
