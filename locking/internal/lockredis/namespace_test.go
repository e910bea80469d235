package lockredis_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
)

func TestCheckNamespace(t *testing.T) {
	for namespace, want := range map[string]string{ // a part of the error; "": accepted
		"": "", "team-a": "", "a b": "", "a:locks": "", "lock:a": "", "a:loc": "", "über": "",
		"a{b": "braces", "a}b": "braces", "a\nb": "braces",
		"a:lock":      `in namespace "a": leave out ":lock"`,
		"a:lock:b":    `in namespace "a": leave out ":lock"`,
		":lock":       `in namespace "": leave out ":lock"`,
		"a:lock:lock": `in namespace "a": leave out ":lock"`,
	} {
		err := lockredis.CheckNamespace(namespace, ":lock:")
		var input *locking.InputError
		if want == "" && err != nil {
			t.Errorf("%q: %v", namespace, err)
		}
		if want != "" && (!errors.As(err, &input) || input.Field != "Config.Namespace" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v; want an *InputError that says %s", namespace, err, want)
		}
	}
}

// No two accepted namespaces share a key, whatever the names of the locks are.
func TestNamespacesAreApart(t *testing.T) {
	const between = ":l:"
	texts := []string{""} // all of up to five of these letters
	for from := 0; len(texts) < 1000; {
		next := len(texts)
		for _, s := range texts[from:next] {
			texts = append(texts, s+":", s+"l", s+"a")
		}
		from = next
	}
	whose := make(map[string]string)
	for _, namespace := range texts {
		if lockredis.CheckNamespace(namespace, between) != nil {
			continue
		}
		for _, name := range texts {
			key := namespace + between + name
			if other, taken := whose[key]; taken {
				t.Fatalf("%q is a lock's key in %q and in %q", key, other, namespace)
			}
			whose[key] = namespace
		}
	}
	if len(whose) < 10_000 {
		t.Fatalf("%d keys are too few to say anything", len(whose))
	}
}
