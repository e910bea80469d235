//go:build !unix

package boundedfile

// noFollow is no flag here: the check before the file is opened must suffice.
const noFollow = 0
