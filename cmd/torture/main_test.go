//go:build unix

package main

import (
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestFlagsThatDoNothing: a flag for a fault that no chosen scenario has is refused, before
// anything is built.
func TestFlagsThatDoNothing(t *testing.T) {
	for args, ok := range map[string]bool{
		"-confirm -scenario failover":     true,
		"-confirm -scenario plain,zombie": true,
		"-confirm -scenario masters":      false,
		"-confirm -short":                 false,
		"-scenario plain,zombie":          true,
		"-scenario plain,plain":           false,
		"-scenario zombies":               false,
	} {
		o, err := parse(strings.Fields(args), io.Discard)
		if err == nil {
			_, err = o.choose()
		}
		if (err == nil) != ok {
			t.Errorf("%s: %v", args, err)
		}
	}
}
