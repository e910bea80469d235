package move

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
)

const (
	// headMax bounds the first line of a backup, in bytes.
	headMax = 64 << 10
	// lineMax bounds the lines behind it, each a job with its history, in bytes.
	lineMax = 1 << 30
)

// lineReader reads the lines of a backup and hashes them.
type lineReader struct {
	r      *bufio.Reader
	sum    hash.Hash
	n      int   // number of the last line, from 1
	at     int64 // its first byte
	length int
	most   int // bytes of the next line
}

// line reads a line of at most c.most bytes.
func (c *lineReader) line() (text []byte, err error) {
	for err = bufio.ErrBufferFull; errors.Is(err, bufio.ErrBufferFull); {
		var part []byte
		part, err = c.r.ReadSlice('\n')
		if len(text)+len(part) > c.most {
			return nil, fmt.Errorf("%w: line %d has more than %d bytes; name the right file", ErrBadBackup, c.n+1, c.most)
		}
		text = append(text, part...)
	}
	return text, err
}

// next reads a line of JSON.
func (c *lineReader) next(into any) error {
	text, err := c.line()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it ends in line %d, before its end was written; take another one", ErrBadBackup, c.n+1)
	}
	if err != nil {
		return err
	}
	c.sum.Write(text)
	c.n, c.at, c.length = c.n+1, c.at+int64(c.length), len(text)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: line %d: %w", ErrBadBackup, c.n, err)
	}
	return nil
}

// end checks the last line against the lines before it.
func (c *lineReader) end(noted backupEnd, sum string) error {
	if noted.Documents != c.n-2 {
		return fmt.Errorf("%w: it has %d documents, and %d are noted in line %d", ErrBadBackup, c.n-2, noted.Documents, c.n)
	}
	if noted.SHA256 != sum {
		return fmt.Errorf("%w: its lines were changed since it was written (SHA-256 %.12s, and %.12s is noted); undo that, or take another one", ErrBadBackup, sum, noted.SHA256)
	}
	if _, err := c.r.ReadByte(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something stands behind its last line, %d", ErrBadBackup, c.n)
	}
	return nil
}
