//go:build !unix

package boundedfile

// noFollow is nothing: the check before the file is opened has to do.
const noFollow = 0
