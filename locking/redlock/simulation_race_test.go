//go:build race

package redlock

func init() { simPart = 4 }
