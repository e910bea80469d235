package docs_test

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

const decisionIndex = "docs/decisions/README.md"

var (
	recordName = regexp.MustCompile(`^([0-9]{4})-[a-z0-9-]+\.md$`)
	indexRow   = regexp.MustCompile(`^\| [^|]+ \| [^|]+ \| \[([0-9]{4})\]\(([^)]+)\) \|$`)
)

// checkDecisions compares the decision records with the rows of their index.
func checkDecisions(t *tree) (problems []string) {
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	files, err := fs.Glob(t.root, "docs/decisions/*.md")
	if err != nil {
		return []string{err.Error()}
	}
	records := map[string]string{} // file by number
	for _, file := range files {
		m := recordName.FindStringSubmatch(path.Base(file))
		switch {
		case file == decisionIndex || m != nil && m[1] == "0000":
		case m == nil:
			report("%s: name the file NNNN-the-decision.md, in lower case", file)
		case records[m[1]] != "":
			report("%s: number %s is taken by %s; take the next free one", file, m[1], records[m[1]])
		default:
			records[m[1]] = path.Base(file)
			if text, _ := t.read(file); !strings.HasPrefix(text, "# "+m[1]+": ") {
				report("%s: the first line must be '# %s: ' and the decision", file, m[1])
			}
		}
	}
	if len(files) == 0 {
		return problems
	}
	text, missing := t.read(decisionIndex)
	problems = append(problems, missing...)
	prose(text, func(line string) {
		if m := indexRow.FindStringSubmatch(line); m != nil {
			if records[m[1]] != m[2] {
				report("%s: row %s links %s: no such record, or a second row of the record", decisionIndex, m[1], m[2])
			}
			delete(records, m[1])
		}
	})
	for _, number := range slices.Sorted(maps.Keys(records)) {
		file := records[number]
		report("%s has no row of %s: add '| question | answer | [%s](%s) |'", decisionIndex, file, number, file)
	}
	return problems
}
