package docs_test

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode"
)

var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	inlineLink = regexp.MustCompile(`\]\(([^)\s]+)(?:\s+"[^"]*")?\)`)
	linkTarget = regexp.MustCompile(`^\[[^\]]+\]:\s*(\S+)`)
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// checkLinks follows every relative link of README.md and docs/, anchors too.
// Links that leave the repository are not fetched: a test must not need a network.
func checkLinks(t *tree) (problems []string) {
	docs, err := t.markdown()
	if err != nil {
		return []string{err.Error()}
	}
	for _, doc := range docs {
		text, missing := t.read(doc)
		problems = append(problems, missing...)
		for _, link := range links(text) {
			if why := t.follow(doc, link); why != "" {
				problems = append(problems, fmt.Sprintf("%s: link %s: %s", doc, link, why))
			}
		}
	}
	return problems
}

// follow returns the fault of a link of doc, or "".
func (t *tree) follow(doc, link string) string {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return ""
	}
	file, anchor, hasAnchor := strings.Cut(link, "#")
	target := doc
	if file != "" {
		target = path.Join(path.Dir(doc), file)
	}
	if strings.HasPrefix(file, "/") || !fs.ValidPath(target) {
		return "not a path inside the repository"
	}
	if _, err := fs.Stat(t.root, target); err != nil {
		return "no such file"
	}
	if !hasAnchor {
		return ""
	}
	if path.Ext(target) != ".md" {
		return "an anchor into a file that has no headings"
	}
	text, _ := t.read(target)
	for _, slug := range headings(text) {
		if slug == anchor {
			return ""
		}
	}
	return "no such heading"
}

// prose calls f for each line of a document that stands outside code fences.
func prose(text string, f func(line string)) {
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		} else if !fenced {
			f(strings.TrimRight(line, "\n"))
		}
	}
}

// links lists a document's link targets, in order.
func links(text string) (targets []string) {
	prose(text, func(line string) {
		line = inlineCode.ReplaceAllString(line, "")
		for _, m := range inlineLink.FindAllStringSubmatch(line, -1) {
			targets = append(targets, m[1])
		}
		if m := linkTarget.FindStringSubmatch(line); m != nil {
			targets = append(targets, m[1])
		}
	})
	return targets
}

// headings lists the anchors that a code host makes of a document's headings:
// lower case, punctuation dropped, blanks to hyphens, -1 -2 after repeated ones.
func headings(text string) (slugs []string) {
	seen := map[string]int{}
	prose(text, func(line string) {
		title := strings.TrimLeft(line, "#")
		if title == line || !strings.HasPrefix(title, " ") {
			return
		}
		title = linkText.ReplaceAllString(strings.TrimSpace(title), "$1")
		slug := strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, title)
		n := seen[slug]
		seen[slug]++
		if n > 0 {
			slug = fmt.Sprintf("%s-%d", slug, n)
		}
		slugs = append(slugs, slug)
	})
	return slugs
}
