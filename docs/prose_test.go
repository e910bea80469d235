package docs_test

import (
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	proseIn = flag.String("prose", "", "list the pronouns in the prose of this folder or document, and of those below it")
	rewrite = flag.Bool("rewrite", false, "write the counts of today to prose.txt, unless one of them has risen in sum")
)

// prosePattern is a kind of pronoun that stands where a reader expects a noun. Level is how many
// of them 1,000 words may have: the highest of nine well-kept Go projects.
type prosePattern struct {
	name  string
	level float64
	match *regexp.Regexp
}

var prosePatterns = []prosePattern{
	{"what-is", 0.1, regexp.MustCompile(`(?i)\bwhat (is|are|was|were|has|have|had|does|do|did|can|may|must|will|would)\b`)},
	{"those-that", 0.5, regexp.MustCompile(`(?i)\b(those|that|one|ones|all) (that|which|who|whose)\b`)},
	{"that-of", 0.1, regexp.MustCompile(`(?i)\b(that|those) of\b`)},
	{"nobody", 0.2, regexp.MustCompile(`(?i)\b(nobody|somebody|everybody|whoever|others)\b`)},
	{"told", 0.5, regexp.MustCompile(`(?i)\b(told|tells?|says?|said|asks?|asked|knows|knew|hears?|heard)\b`)},
}

// proseCount is the prose of one package or document.
type proseCount struct {
	words int
	found []int    // by pattern
	lines []string // file:line: text, for each finding
}

// add counts the words and findings of one line.
func (c *proseCount) add(file string, line int, text string) {
	text = inlineCode.ReplaceAllString(text, "")
	c.words += len(strings.Fields(text))
	for k, p := range prosePatterns {
		for _, m := range p.match.FindAllString(text, -1) {
			c.found[k]++
			c.lines = append(c.lines, fmt.Sprintf("%s:%d: %s %q: %s", file, line, p.name, m, strings.TrimSpace(text)))
		}
	}
}

// limit is how many findings of pattern k so many words may have.
func (c *proseCount) limit(k int) int {
	return int(prosePatterns[k].level*float64(c.words)/1000 + 0.999)
}

// readProse reads the comments of every Go file and script, by folder, and every document.
func readProse(root fs.FS) (map[string]*proseCount, error) {
	all := map[string]*proseCount{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if name != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules" || base == "dist" || name == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		key, read := path.Dir(name), goComments
		switch path.Ext(name) {
		case ".go":
		case ".lua":
			read = luaComments
		case ".md":
			key, read = name, paragraphs
		default:
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if all[key] == nil {
			all[key] = &proseCount{found: make([]int, len(prosePatterns))}
		}
		read(string(text), func(line int, text string) { all[key].add(name, line, text) })
		return err
	})
	return all, err
}

// goComments calls f for each line of a Go file's comments.
func goComments(text string, f func(line int, text string)) {
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return
		}
		if tok != token.COMMENT {
			continue
		}
		at := file.Line(pos)
		for line := range strings.Lines(lit) {
			f(at, strings.Trim(line, "/* \t\n"))
			at++
		}
	}
}

func luaComments(text string, f func(line int, text string)) {
	at := 0
	for line := range strings.Lines(text) {
		at++
		if _, comment, found := strings.Cut(line, "--"); found {
			f(at, strings.Trim(comment, "- \n"))
		}
	}
}

// paragraphs calls f for each line of a document outside of code.
func paragraphs(text string, f func(line int, text string)) {
	at, fenced := 0, false
	for line := range strings.Lines(text) {
		at++
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		} else if !fenced {
			f(at, strings.TrimSpace(line))
		}
	}
}

const proseFile = "prose.txt"

const proseHead = `# Pronouns in comments and documents, for each folder and document that has more than the level of well-kept projects:
# name, then the count of each pattern in prose_test.go. Their sums only fall; go test ./docs -run TestProse -rewrite writes today's.
`

// proseAllowed reads the counts that each folder or document may have today.
func proseAllowed(t *testing.T) map[string][]int {
	t.Helper()
	text, err := os.ReadFile(proseFile)
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string][]int{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		counts := make([]int, len(prosePatterns))
		if len(fields) != 1+len(counts) {
			t.Fatalf("%s: %q: want a name and %d counts", proseFile, line, len(counts))
		}
		for k := range counts {
			if _, err := fmt.Sscan(fields[k+1], &counts[k]); err != nil {
				t.Fatalf("%s: %q: %v", proseFile, line, err)
			}
		}
		allowed[fields[0]] = counts
	}
	return allowed
}

// TestProse holds the number of pronouns that stand in a noun's place: at the level of well-kept
// projects, or at the count of prose.txt, whose sums only fall.
func TestProse(t *testing.T) {
	all, err := readProse(os.DirFS(".."))
	if err != nil {
		t.Fatal(err)
	}
	allowed, text, sums := proseAllowed(t), proseHead, make([]int, len(prosePatterns))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := all[name]
		if *proseIn != "" && (name == *proseIn || strings.HasPrefix(name, *proseIn+"/")) {
			t.Logf("%s: %d words, %v\n%s", name, c.words, c.found, strings.Join(c.lines, "\n"))
		}
		above := false
		for k, p := range prosePatterns {
			most := c.limit(k)
			above = above || c.found[k] > most
			if before := allowed[name]; before != nil {
				most = max(most, before[k])
			}
			if c.found[k] > most && !*rewrite {
				t.Errorf("%s: %s %d times, at most %d: write the noun in its place; go test ./docs -run TestProse -v -prose %s lists the lines",
					name, p.name, c.found[k], most, name)
			}
		}
		if above {
			text += name + " " + strings.Trim(fmt.Sprint(c.found), "[]") + "\n"
			add(sums, c.found)
		}
	}
	if *rewrite {
		rewriteProse(t, text, sums, allowed)
	}
}

func add(sums, counts []int) {
	for k, n := range counts {
		sums[k] += n
	}
}

// rewriteProse writes prose.txt, where no sum of a pattern has risen.
func rewriteProse(t *testing.T, text string, sums []int, allowed map[string][]int) {
	t.Helper()
	before := make([]int, len(sums))
	for _, counts := range allowed {
		add(before, counts)
	}
	for k, p := range prosePatterns {
		if sums[k] > before[k] && len(allowed) > 0 {
			t.Fatalf("%s: %d times in all, %d before: prose.txt stays; write nouns first", p.name, sums[k], before[k])
		}
	}
	if err := os.WriteFile(proseFile, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
