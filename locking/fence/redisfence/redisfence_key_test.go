package redisfence

import (
	"testing"

	"github.com/escapement/escapement/locking/redistest"
)

func TestBesideSharesTheSlot(t *testing.T) {
	for key, want := range map[string]string{
		"a": "{a}:key-fence", "{a}": "{a}:fence", "order:42": "{order:42}:key-fence", "orders:{42}": "orders:{42}:fence", "{a}b{c}": "{a}b{c}:fence",
		"{": "{{}:key-fence", "a{b": "{a{b}:key-fence", "{}a{b}": "", "a{}": "", "}": "", "a}b{c}": "a}b{c}:fence", "": "",
	} {
		got, err := FenceKey(key)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", key, got, err, want)
		}
		if err == nil && hashed(got) != hashed(key) {
			t.Errorf("%q and %q are hashed by %q and %q", key, got, hashed(key), hashed(got))
		}
	}
}

// shares returns two keys with one fence; "" and "" when there are none.
func shares(fenceKey func(key string) (string, error)) (first, second string) {
	keys := []string{""}
	for i := 0; len(keys) < 1+4+16+64+256; i++ { // all of up to four of these letters
		for _, letter := range []string{"a", "{", "}", ":"} {
			keys = append(keys, keys[i]+letter)
		}
	}
	of := map[string]string{}
	for _, key := range keys {
		for _, suffix := range []string{"", taggedSuffix, plainSuffix} {
			for _, key := range []string{key + suffix, "{" + key + "}" + suffix} {
				got, err := fenceKey(key)
				if err != nil {
					continue
				}
				if other, taken := of[got]; taken && other != key {
					return other, key
				}
				of[got] = key
			}
		}
	}
	return "", ""
}

func TestBesideIsOneToOne(t *testing.T) {
	if a, b := shares(FenceKey); a != b {
		t.Errorf("%q and %q have one fence", a, b)
	}
	_, client := redistest.StartEmbedded(t)
	g := New(client, Config{})
	if err := g.Set(t.Context(), "a", "x", 9, 0); err != nil {
		t.Fatal(err)
	}
	if err := g.Set(t.Context(), "{a}", "y", 5, 0); err != nil {
		t.Errorf("the first write to another key: %v", err)
	}
}

// hashed returns the part of a key that a Cluster hashes, by the specification: from the first '{'
// to the first '}' after it, unless nothing is between them.
func hashed(key string) string {
	for i := range key {
		if key[i] != '{' {
			continue
		}
		for j := i + 1; j < len(key); j++ {
			if key[j] == '}' {
				if j == i+1 {
					return key
				}
				return key[i+1 : j]
			}
		}
		return key
	}
	return key
}
