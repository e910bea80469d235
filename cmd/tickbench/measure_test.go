//go:build unix

package main

import (
	"os"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain is also what the test starts as the processes that it measures.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-as") {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	for _, role := range []string{roleNode, roleCron} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			f, err := measure(t.Context(), options{nodes: 2, span: 2 * time.Second}, role, 20)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", f)
			if f.due != 40 || f.once != 40 {
				t.Errorf("of %d ticks %d ran once; want all of 40", f.due, f.once)
			}
			if f.p50 <= 0 || f.most < f.p50 || f.nodes <= 0 || f.redis <= 0 || (f.scripts > 0) != (role == roleNode) {
				t.Errorf("nothing comes from nothing: %+v", f)
			}
		})
	}
}

func TestNumbers(t *testing.T) {
	if got, err := numbers("1,1000,20"); err != nil || !slices.Equal(got, []int{1, 1000, 20}) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"", "0", "1,,2", "-1", "100001", "a"} {
		if _, err := numbers(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
