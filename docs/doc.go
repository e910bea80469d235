// Package docs holds the project's documents and no code. Its tests read them
// beside the source and fail when the two disagree: imports against the arrows,
// go statements against the table of goroutines, links against the files.
package docs
