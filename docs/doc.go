// Package docs holds the project's documents and no code. Its tests read them
// beside the source and fail when the two disagree: imports against the arrows,
// links against the files.
package docs
