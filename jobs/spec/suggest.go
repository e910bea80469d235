package spec

import "strings"

// DidYouMean returns "; did you mean X" for the word nearest to the one typed,
// or "" when none is near enough to be worth saying.
func DidYouMean(typed string, words []string) string {
	best, least := "", 1+min(3, max(1, len(typed)/3))
	for _, w := range words {
		if d := editDistance(strings.ToLower(typed), strings.ToLower(w)); d < least {
			best, least = w, d
		}
	}
	for _, w := range words {
		if best == "" && len(w) > 2 && strings.HasPrefix(typed, w) { // warning, listen_addr
			best = w
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best
}

// editDistance counts the letters to insert, drop, replace or swap with their
// neighbour to get from a to b. Longer than 64 bytes counts as far away.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b))
	}
	older, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], older[j-2]+1)
			}
		}
		older, row, next = row, next, older
	}
	return row[len(b)]
}

func list(words []string) string { return strings.Join(words, ", ") }
