package main

import "github.com/escapement/escapement/cmd/internal/cli"

func main() { cli.Main(nil) }
