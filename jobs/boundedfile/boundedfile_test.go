package boundedfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A file is read up to its limit, and not beyond: also a file with a size of 2 TiB.
func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := Read(file, 10); err != nil || string(data) != "0123456789" {
		t.Errorf("%q, %v", data, err)
	}
	var size *SizeError
	if _, err := Read(file, 9); !errors.As(err, &size) || *size != (SizeError{10, 9}) {
		t.Errorf("one byte too many: %v", err)
	}
	const huge = 2 << 40
	if err := os.Truncate(file, huge); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Read(file, 1<<16)
	runtime.ReadMemStats(&after)
	if !errors.As(err, &size) || size.Size != huge {
		t.Errorf("2 TiB: %v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 { // other tests allocate too
		t.Errorf("2 TiB took %d bytes of memory", took)
	}
	if _, err := Read(filepath.Join(dir, "none"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := Read(dir, 1); err == nil || !strings.HasSuffix(err.Error(), "is a directory") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Read(os.DevNull, 1); runtime.GOOS != "windows" && (!errors.Is(err, ErrNotRegular) || !strings.Contains(err.Error(), "is a device, and no regular file")) {
		t.Errorf("a device: %v", err)
	}
}

// A link is followed where a link may be.
func TestLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	if data, err := Read(link, 1); err != nil || string(data) != "x" {
		t.Errorf("followed: %q, %v", data, err)
	}
	if _, err := ReadDirect(link, 1); !errors.Is(err, ErrNotRegular) || !strings.Contains(err.Error(), "is a symbolic link") {
		t.Errorf("direct: %v", err)
	}
	if data, err := ReadDirect(file, 1); err != nil || string(data) != "x" {
		t.Errorf("direct, without a link: %q, %v", data, err)
	}
}

// A file system that hangs holds up no caller for longer than the limit, and holds one goroutine
// however many calls follow.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release, calls := make(chan struct{}), 0
		hang := func() (int, error) { calls++; <-release; return 1, nil }
		for range 3 {
			began := time.Now()
			if _, err := callWithin("hangs", Within, hang); !errors.Is(err, ErrNoAnswer) || time.Since(began) != Within {
				t.Errorf("%v after %s", err, time.Since(began))
			}
		}
		if _, err := callWithin("another", Within, func() (int, error) { return 2, nil }); err != nil {
			t.Errorf("another name: %v", err)
		}
		close(release)
		synctest.Wait()
		if n, err := callWithin("hangs", Within, func() (int, error) { return 3, nil }); n != 3 || err != nil || calls != 1 {
			t.Errorf("afterwards: %d, %v; %d calls", n, err, calls)
		}
	})
}

// The parent process may take an hour to write to a pipe that it passes on.
func TestInheritedDescriptorsHaveTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := func() (int, error) { time.Sleep(time.Hour); return 1, nil }
		for _, name := range []string{"/dev/stdin", "/dev/fd/63", "/proc/self/fd/0"} {
			if n, err := call(name, slow); n != 1 || err != nil {
				t.Errorf("%s: %d, %v", name, n, err)
			}
		}
	})
}
