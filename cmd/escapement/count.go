package main

import (
	"errors"
	"strconv"
)

// count is the number behind a flag that says how many rows a list may have: 0 for all.
type count int

func (c *count) String() string { return strconv.Itoa(int(*c)) }
func (c *count) Type() string   { return "int" }

func (c *count) Set(text string) error {
	n, err := strconv.Atoi(text)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return errors.New("it is no number of rows; 0 lists all")
	case err != nil:
		return errors.New("it is no whole number")
	case n < 0:
		return errors.New("it is negative; 0 lists all")
	}
	*c = count(n)
	return nil
}
